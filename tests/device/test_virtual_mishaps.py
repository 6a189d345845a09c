"""What befalls a phone in the middle of a session, as the host sees it, and that the phone is well afterwards."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from adb_backends import Backend, backend_of, gpu_nodes
from waiting import LONG_S, eventually

from device_runner.adb_device import AdbDevice
from device_runner.device import Loadable, Program
from device_runner.failures import DeviceCrash, DeviceFailure, Failure, LinkFailure, PathFailure
from device_runner.session.rpc_session import RpcSession
from device_runner.stand_ins.virtual import Chance, Mishap, SlowKernels, VirtualPhone
from device_runner.stand_ins.virtual.fault_file import Dice
from device_runner.transport.base import boot_of

pytestmark = [pytest.mark.rest, pytest.mark.device]


@pytest.fixture
def adb(phone: VirtualPhone) -> Backend:
    return backend_of(phone)


def failure_of(device: AdbDevice, use: Callable[[RpcSession], object]) -> Failure:
    """How a session ends in which something is done again and again."""
    with pytest.raises(Failure) as raised, device.session({}, timeout_s=LONG_S) as opened:
        again_and_again(lambda: use(opened))
    return raised.value


def again_and_again(work: Callable[[], object]) -> None:
    while True:
        work()


def ask(session: RpcSession) -> None:
    session.opencl_names(timeout_s=LONG_S)


def state(adb: Backend) -> str:
    done = adb.adb("get-state", check=False)
    return (done.stdout or done.stderr).decode().strip()


def answers(adb: Backend) -> bool:
    adb.adb("connect", adb.serial, check=False)
    return adb.adb("shell", "echo well", check=False).stdout == b"well\n"


def told(phone: VirtualPhone) -> list[str]:
    return [entry["what"] for entry in phone.injected()]


def test_unplugged_in_a_session_and_plugged_in_again(phone: VirtualPhone, device: AdbDevice, adb: Backend) -> None:
    phone.fault(mishaps=(Mishap("unplug", after_s=0.3, for_s=0.5),))
    assert isinstance(failure_of(device, ask), DeviceFailure)
    assert eventually(lambda: answers(adb))
    assert told(phone)[-1:] == ["unplug"]


def test_a_mishap_happens_as_often_as_it_should(phone: VirtualPhone, device: AdbDevice) -> None:
    before = len(phone.injected())
    phone.fault(mishaps=(Mishap("kill_server", after_s=1.0, times=2),))
    for _ in range(2):
        assert isinstance(failure := failure_of(device, ask), DeviceCrash)
        assert "SIGKILL" in failure.message
    with device.session({}, timeout_s=LONG_S) as opened:
        ask(opened)
    assert told(phone)[before:] == ["kill_server"] * 2


def test_a_frozen_phone_thaws(phone: VirtualPhone, device: AdbDevice, adb: Backend) -> None:
    phone.fault(mishaps=(Mishap("freeze", for_s=1.0),))
    with device.session({}, timeout_s=LONG_S) as opened:
        assert eventually(lambda: told(phone)[-1:] == ["freeze"])
        assert state(adb) == "device"
        assert adb.shell("echo thawed") == "thawed\n"
        ask(opened)


def test_a_reboot_that_is_asked_for(phone: VirtualPhone, device: AdbDevice, adb: Backend) -> None:
    if not phone.sandboxed:
        pytest.skip("without a sandbox the boot id is the host's")
    before = boot_of(device.transport, timeout_s=LONG_S)
    phone.update(gpu={"resets": 4})
    adb.shell("setprop debug.mine 1; settings put global mine 1; (setsid sleep 600 >/dev/null 2>&1 &)")
    adb.shell(f"echo kept > {phone.root}/kept")
    adb.adb("reboot")
    assert eventually(lambda: state(adb) != "device")
    assert eventually(lambda: answers(adb))
    assert boot_of(device.transport, timeout_s=LONG_S) not in ("", before)
    said = ["getprop", "sys.boot_completed"]
    assert eventually(lambda: device.transport.shell(said, timeout_s=LONG_S).stdout == "1\n")
    assert adb.shell("getprop debug.mine; settings get global mine; pgrep sleep || true") == "\n1\n"
    assert adb.shell(f"cat {phone.root}/kept {gpu_nodes(phone)}/reset_count") == "kept\n0\n"


def test_what_was_pushed_is_found_after_a_reboot_and_a_jump_of_the_clock(
    phone: VirtualPhone, device: AdbDevice, adb: Backend, tmp_path: Path
) -> None:
    file = tmp_path / "file.so"
    file.write_bytes(bytes(100_000))
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    assert device.push(file, sha256, timeout_s=LONG_S).sent_bytes == 100_000
    phone.fault(clock_jump_s=365 * 86_400)
    assert device.push(file, sha256, timeout_s=LONG_S).sent_bytes == 0
    adb.adb("reboot")
    assert eventually(lambda: state(adb) != "device")
    assert eventually(lambda: answers(adb))
    assert device.push(file, sha256, timeout_s=LONG_S).sent_bytes == 0


def test_a_phone_that_boots_says_that_it_has_not_booted(phone: VirtualPhone, device: AdbDevice, adb: Backend) -> None:
    def booted() -> bytes:
        adb.adb("connect", adb.serial, check=False)
        return adb.adb("shell", "getprop sys.boot_completed", check=False).stdout

    def is_seen_booting(for_s: float) -> bool:
        """Whether a look falls into a boot that takes so long: on a busy machine a look takes seconds."""
        phone.fault(mishaps=(Mishap("reboot", for_s=for_s),))
        with device.transport.dial(int(phone.serial.partition(":")[2]), timeout_s=LONG_S):
            return eventually(lambda: booted() == b"0\n", deadline_s=4 * for_s)

    assert any(map(is_seen_booting, (3.0, 15.0, 75.0)))
    assert eventually(lambda: booted() == b"1\n")


def test_a_reset_of_the_gpu_fails_its_kernels(
    phone: VirtualPhone, device: AdbDevice, adb: Backend, opencl_program: Loadable
) -> None:
    count = f"cat {gpu_nodes(phone)}/reset_count"
    resets = int(adb.shell(count))
    phone.fault(mishaps=(Mishap("reset_gpu", after_s=2.0),), slow_kernels=(SlowKernels(least_s=0.05),))

    def run(program: Program) -> None:
        program.run([np.zeros((4, 8), "float32")], timeout_s=LONG_S)

    with device.session({}, timeout_s=LONG_S) as opened:
        program = opened.load(opencl_program, timeout_s=LONG_S)
        with pytest.raises(PathFailure, match="CL_OUT_OF_RESOURCES"):
            again_and_again(lambda: run(program))
        with pytest.raises(PathFailure, match="CL_OUT_OF_RESOURCES"):  # a context never recovers
            run(program)
    assert int(adb.shell(count)) == resets + 1


def test_a_hot_phone_throttles_and_cools(phone: VirtualPhone, device: AdbDevice, adb: Backend) -> None:
    files = "temp gpuclk thermal_pwrlevel"
    look = f"cd {gpu_nodes(phone)} && cat {files}; dumpsys thermalservice | grep Status:"
    cool = adb.shell(look)
    phone.fault(mishaps=(Mishap("overheat", for_s=1.5),))
    with device.session({}, timeout_s=LONG_S):
        assert eventually(lambda: adb.shell(look) == "95000\n400000000\n2\nThermal Status: 3\n")
    assert eventually(lambda: adb.shell(look) == cool)


def test_a_killed_adb_server_is_started_again(phone: VirtualPhone, device: AdbDevice, adb: Backend) -> None:
    phone.kill_adb()
    with pytest.raises(LinkFailure):
        device.transport.shell(["true"], timeout_s=LONG_S)
    phone.restart_adb()
    assert eventually(lambda: answers(adb))


def chance_that(operation: str, *wanted: str) -> Chance:
    """A chance that strikes the first operations of a kind so."""
    for seed in itertools.count():
        chance, dice = Chance(seed, rate=1.0, for_s=0.2), Dice()
        if tuple(stroke.what for _ in wanted if (stroke := dice.draw(operation, chance))) == wanted:
            return chance
    raise AssertionError


def test_chance_strikes_commands_and_says_so(phone: VirtualPhone, adb: Backend) -> None:
    strokes = ("refuse", "freeze", "drop", "refuse")
    before = len(phone.injected())

    def struck() -> list[tuple[str, str]]:
        return [(entry["into"], entry["what"]) for entry in phone.injected()[before:]]

    phone.fault(chance=chance_that("shell", *strokes))
    said = [adb.adb("wait-for-device", "shell", "sleep 0.3; echo well", check=False).stdout for _ in strokes]
    phone.fault(chance=None)
    assert said == [b"", b"well\n", b"", b""]
    assert eventually(lambda: struck() == [("shell", stroke) for stroke in strokes]), struck()


def test_chance_strikes_pushes(phone: VirtualPhone, adb: Backend, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(100_000))
    phone.fault(chance=chance_that("push", "full", "error", "freeze"))
    pushes = [adb.adb("push", str(tmp_path / "file"), f"{phone.root}/file", check=False) for _ in range(3)]
    assert b"No space left on device" in pushes[0].stderr
    assert b"by chance" in pushes[1].stderr
    assert pushes[2].returncode == 0
