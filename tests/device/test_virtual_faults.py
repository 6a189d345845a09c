"""What a host sees when the phone misbehaves, and that it recovers."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from adb_backends import Backend, backend_of, gpu_nodes
from waiting import FENCE_S, eventually

from device_runner.adb_device import AdbDevice
from device_runner.failures import DeviceLost, RigFailure
from device_runner.stand_ins.virtual import Faults, VirtualPhone, virtual_phone
from device_runner.transport.adb import Adb
from device_runner.transport.adb_transport import AdbTransport

pytestmark = pytest.mark.device


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualPhone]:
    with virtual_phone(tmp_path_factory.mktemp("phone")) as running:
        yield running


@pytest.fixture
def running(shared: VirtualPhone) -> Iterator[VirtualPhone]:
    """A phone that is healthy before and after the test."""
    healthy = vars(Faults())
    shared.fault(**healthy)
    yield shared
    shared.fault(**healthy)
    adb = backend_of(shared)

    def well() -> bool:
        adb.adb("connect", shared.serial, check=False)
        return adb.adb("shell", "echo well", check=False).stdout == b"well\n"

    assert eventually(well)


@pytest.fixture
def adb(running: VirtualPhone) -> Backend:
    return backend_of(running)


@pytest.fixture
def megabyte(tmp_path: Path) -> str:
    (tmp_path / "megabyte").write_bytes(bytes(1_000_000))
    return str(tmp_path / "megabyte")


def state(adb: Backend) -> str:
    done = adb.adb("get-state", check=False)
    return (done.stdout or done.stderr).decode().strip()


def test_a_refused_push_says_why(running: VirtualPhone, adb: Backend, megabyte: str) -> None:
    running.fault(send_error="the cat sat on it")
    done = adb.adb("push", megabyte, f"{running.root}/x", check=False)
    assert done.returncode != 0
    assert b"the cat sat on it" in done.stderr


def test_a_full_phone_says_so_and_keeps_no_part(running: VirtualPhone, adb: Backend, megabyte: str) -> None:
    running.fault(full_after_bytes=300_000)
    done = adb.adb("push", megabyte, f"{running.root}/full", check=False)
    assert done.returncode != 0
    assert b"No space left on device" in done.stderr
    assert adb.adb("shell", f"test -e {running.root}/full", check=False).returncode == 1


def test_a_cable_pulled_in_a_push_fails_it(running: VirtualPhone, adb: Backend, megabyte: str) -> None:
    running.fault(drop_after_bytes=300_000)
    assert adb.adb("push", megabyte, f"{running.root}/x", check=False).returncode != 0


def test_a_fault_strikes_in_the_middle_of_a_push(running: VirtualPhone, adb: Backend, megabyte: str) -> None:
    running.fault(bytes_per_s=100_000)
    with subprocess.Popen(adb.command("push", megabyte, f"{running.root}/slow"), stderr=subprocess.PIPE) as push:
        part = running.home / "data/local/tmp/adreno-bench/slow"
        assert eventually(lambda: part.exists() and part.stat().st_size > 0)
        running.fault(full_after_bytes=0)
        assert push.stderr is not None
        assert b"No space left on device" in push.stderr.read()
        assert push.wait(FENCE_S) != 0


def test_a_frozen_phone_is_a_device_that_does_not_answer(running: VirtualPhone, adb: Backend) -> None:
    running.fault(frozen=True)
    assert state(adb) == "device"
    with subprocess.Popen(adb.command("shell", "echo thawed"), stdout=subprocess.PIPE) as shell:
        with pytest.raises(subprocess.TimeoutExpired):
            shell.wait(0.3)
        running.fault(frozen=False)
        assert shell.stdout is not None
        assert shell.stdout.read() == b"thawed\n"


def test_an_unplugged_phone_is_gone_and_comes_back(running: VirtualPhone, adb: Backend) -> None:
    running.fault(offline=True)
    assert eventually(lambda: state(adb) != "device")
    assert adb.adb("shell", "true", check=False).returncode != 0


def test_an_unauthorised_phone_waits_for_its_owner(running: VirtualPhone, adb: Backend) -> None:
    adb.adb("disconnect", running.serial)
    running.fault(unauthorized=True)
    adb.adb("connect", running.serial, check=False)
    assert eventually(lambda: "unauthorized" in state(adb))
    running.fault(unauthorized=False)
    assert eventually(lambda: state(adb) == "device")


def test_a_phone_of_old_knows_only_version_1(running: VirtualPhone, adb: Backend, tmp_path: Path) -> None:
    adb.adb("disconnect", running.serial)
    running.fault(features=("cmd",))
    adb.adb("connect", running.serial)
    assert adb.adb("features").stdout.split() == [b"cmd"]
    done = adb.adb("shell", "echo out; echo err >&2; exit 4", check=False)
    assert (done.returncode, done.stdout) == (0, b"out\nerr\n")
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub/file").write_bytes(bytes(range(256)) * 1000)
    (tree / "link").symlink_to("sub/file")
    adb.adb("push", str(tree), f"{running.root}/old")
    adb.adb("pull", f"{running.root}/old", str(tmp_path / "back"))
    assert (tmp_path / "back/link").read_bytes() == (tree / "sub/file").read_bytes()
    assert b"link" in adb.adb("ls", f"{running.root}/old").stdout
    adb.adb("disconnect", running.serial)


def test_the_state_changes_under_a_running_command(running: VirtualPhone, adb: Backend) -> None:
    node = f"{gpu_nodes(running)}/temp"
    watch = f"while read line; do cat {node}; done"
    with subprocess.Popen(
        adb.command("shell", watch), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as watching:
        assert watching.stdin is not None
        assert watching.stdout is not None
        for temperature_mc in (40_000, 75_500):
            running.update(temperatures_mc={"gpuss-0": temperature_mc})
            watching.stdin.write(b"\n")
            assert watching.stdout.readline() == b"%d\n" % temperature_mc


def test_shells_in_flight_end_when_the_cable_is_pulled(running: VirtualPhone, adb: Backend) -> None:
    shells = [subprocess.Popen(adb.command("shell", "sleep 60"), stderr=subprocess.DEVNULL) for _ in range(4)]
    asleep = "test $(pgrep -c -x sleep) -ge 4"
    assert eventually(lambda: adb.adb("shell", asleep, check=False).returncode == 0)
    running.fault(offline=True)
    assert all(shell.wait(FENCE_S) != 0 for shell in shells)


def test_storage_that_is_read_only_refuses_every_change(running: VirtualPhone, adb: Backend, megabyte: str) -> None:
    adb.shell(f"echo kept > {running.root}/kept")
    running.fault(read_only=True)
    done = adb.adb("push", megabyte, f"{running.root}/x", check=False)
    assert done.returncode != 0
    assert b"Read-only file system" in done.stderr
    if running.sandboxed:
        for command in ("mkdir {}/y", "touch {}/y", "echo lost > {}/kept", "rm {}/kept"):
            done = adb.adb("shell", command.format(running.root), check=False)
            assert done.returncode != 0
            assert b"Read-only file system" in done.stderr
    assert adb.shell(f"cat {running.root}/kept") == "kept\n"
    running.fault(read_only=False)
    adb.shell(f"rm {running.root}/kept")


def test_the_clock_jumps_and_old_files_are_older(running: VirtualPhone, adb: Backend, megabyte: str) -> None:
    hour_s = 3600
    adb.shell(f"rm -rf {running.root}/clock; mkdir {running.root}/clock; touch {running.root}/clock/before")
    before = int(adb.shell("date +%s"))
    running.fault(clock_jump_s=hour_s)
    assert eventually(lambda: int(adb.shell("date +%s")) >= before + hour_s)
    adb.shell(f"touch {running.root}/clock/after")
    assert adb.shell(f"find {running.root}/clock -type f -mmin +30") == f"{running.root}/clock/before\n"
    listed = [line.split() for line in adb.adb("ls", f"{running.root}/clock").stdout.splitlines()]
    times = {name: int(time_s, 16) for _, _, time_s, name in listed}
    assert times[b"before"] in range(before - 1, before + 2)
    assert times[b"after"] >= before + hour_s
    running.fault(clock_jump_s=0)
    assert eventually(lambda: int(adb.shell("date +%s")) < before + hour_s)
    assert adb.shell(f"find {running.root}/clock -type f -mmin +30") == ""


def test_adb_says_connected_to_a_phone_that_is_not_there(running: VirtualPhone, adb: Backend) -> None:
    adb.adb("disconnect", running.serial)
    running.fault(hollow=True)
    assert adb.adb("connect", running.serial, check=False).stdout.startswith(b"connected to")
    assert adb.adb("shell", "true", check=False).returncode != 0


@pytest.mark.parametrize("answers", ["garbage", "truncated"])
def test_commands_answer_nonsense(running: VirtualPhone, adb: Backend, answers: str) -> None:
    running.fault(shell_answers=answers)
    assert state(adb) == "device"
    assert adb.adb("shell", "echo well", check=False).stdout != b"well\n"
    with pytest.raises(DeviceLost):
        Adb(running.serial, running.adb_server).shell(["echo", "well"], timeout_s=FENCE_S)


def test_a_link_with_latency_delays_every_answer(running: VirtualPhone, adb: Backend) -> None:
    running.fault(latency_s=0.3)
    began = time.monotonic()
    assert adb.shell("echo well") == "well\n"
    assert time.monotonic() - began >= 0.3


@pytest.mark.parametrize("broken", ["symbol", "handshake"])
def test_a_runtime_that_does_not_fit_is_the_rigs_fault(running: VirtualPhone, broken: str) -> None:
    running.fault(broken_runtime=broken)
    device = AdbDevice("virtual", AdbTransport(running.serial, running.adb_server, running.root), ["tvm_rpc"])
    with pytest.raises(RigFailure) as raised, device.session({}, timeout_s=FENCE_S):
        pass
    assert broken == "handshake" or "cannot locate symbol" in raised.value.evidence


def test_a_port_can_be_taken_between_the_look_and_the_bind(running: VirtualPhone) -> None:
    running.fault(taken_ports=(20_000, 32_000))
    device = AdbDevice("virtual", AdbTransport(running.serial, running.adb_server, running.root), ["tvm_rpc"])
    with pytest.raises(RigFailure, match="no free port"), device.session({}, timeout_s=FENCE_S):
        pass
