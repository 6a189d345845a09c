"""A device that another host offers through TVM's own tracker, used as if it were ours."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from waiting import FENCE_S

from device_runner.adb_device import AdbDevice
from device_runner.deadline import Deadline
from device_runner.device import Loadable
from device_runner.failures import DeviceBusy, DeviceLost, RigFailure
from device_runner.lease import holder_of
from device_runner.registry import open_device
from device_runner.rpc_server import handshake
from device_runner.rpc_server.tracker import Address
from device_runner.transport.adb import Adb, AdbRefusal
from harness.tools.fleet import serve as serving
from harness.tools.fleet.offer import Offer
from harness.tools.fleet.remote import RemoteTransport, offers, open_remote
from harness.tools.fleet.serve import Lender, serve
from harness.tools.fleet.tracker import request

pytestmark = [pytest.mark.rest, pytest.mark.device]

LOOPBACK = "127.0.0.1"
NEVER_S = FENCE_S


@pytest.fixture(scope="module")
def tracker() -> Iterator[Address]:
    from tvm.rpc.tracker import Tracker

    running = Tracker(LOOPBACK, port=20000, port_end=32000, silent=True)
    yield LOOPBACK, running.port
    running.terminate()


@pytest.fixture(scope="module")
def offered(cache: Path, tracker: Address) -> Iterator[Path]:
    """The virtual phone, offered by another process as a person starts it; the cache of its host.

    A process, because TVM holds the interpreter's lock while it waits for what our threads would have to pass on.
    """
    command = [sys.executable, "-c", "from harness.cli import main; main()", "fleet", "serve", "--device", "virtual"]
    environment = {**os.environ, "ADRENO_BENCH_CACHE": str(cache)}
    with open_device("virtual", cache):
        pass  # which compiles its runtimes, if that was not done: a busy machine needs minutes
    with subprocess.Popen([*command, "--tracker", f"{tracker[0]}:{tracker[1]}"], env=environment) as host:
        try:
            the_offer(tracker)
            yield cache
        finally:
            host.send_signal(signal.SIGINT)
            assert host.wait(FENCE_S) == 128 + signal.SIGINT


def the_offer(tracker: Address, *, free: bool = True) -> Offer:
    """The one offer, as soon as it is free or not free."""
    for _ in Deadline(NEVER_S).attempts(0.05):
        if (found := offers(tracker)) and bool(found[0].used_by) is not free:
            return found[0]
    raise AssertionError(f"{found} is not {'free' if free else 'used'}")


@contextmanager
def got(tracker: Address, folder: Path) -> Iterator[AdbDevice]:
    with open_remote(the_offer(tracker).key, tracker, folder, timeout_s=NEVER_S) as (device, _):
        yield device


def test_a_remote_device_is_pushed_to_loaded_and_run(
    offered: Path, tracker: Address, cpu_program: Loadable, tmp_path: Path
) -> None:
    with open_remote(the_offer(tracker).key, tracker, tmp_path, timeout_s=NEVER_S) as (remote, tell):
        assert remote.name == f"virtual@{socket.gethostname()}"
        assert remote.identity.key == the_offer(tracker, free=False).identity.key
        tell("tiny-opencl-float32-untuned", "sampling")
        with remote.session({"GREETING": "hello"}, timeout_s=FENCE_S) as session:
            program = session.load(cpu_program, timeout_s=FENCE_S)
            (output,), _ = program.run([np.full((4, 8), 3.0, np.float32)], timeout_s=FENCE_S)
            assert (output == 6.0).all()
        assert remote.transport.shell(["cat", f"{remote.transport.root}/nothing"], timeout_s=FENCE_S).code != 0
        owner = holder_of("virtual", offered / "leases")
        assert owner
        assert (owner.case, owner.step) == ("tiny-opencl-float32-untuned", "sampling")


def test_a_device_has_one_user_and_the_next_waits_for_it(offered: Path, tracker: Address, tmp_path: Path) -> None:
    with got(tracker, tmp_path):
        busy = the_offer(tracker, free=False)
        assert busy.used_by == LOOPBACK
        with pytest.raises(DeviceBusy, match=r"became free within 0.2 s"):
            request(tracker, busy.key, 0.2)
        waiting: list[str] = []

        def next_user() -> None:
            with open_remote(busy.key, tracker, tmp_path, timeout_s=NEVER_S) as (device, _):
                waiting.append(device.name)

        thread = threading.Thread(target=next_user)
        thread.start()
        time.sleep(0.3)
        assert waiting == []
    thread.join(NEVER_S)
    assert waiting == [f"virtual@{socket.gethostname()}"]


def test_a_user_that_is_gone_frees_the_device_and_its_streams_end(
    offered: Path, tracker: Address, tmp_path: Path
) -> None:
    holding = open_remote(the_offer(tracker).key, tracker, tmp_path, timeout_s=NEVER_S)
    device, _ = holding.__enter__()
    transport = device.transport
    job = transport.spawn(["sleep", "60"], environment={}, timeout_s=FENCE_S)
    holding.__exit__(None, None, None)
    assert job.wait(FENCE_S)
    with got(tracker, tmp_path) as again:
        assert again.transport.shell(["echo", "hi"], timeout_s=FENCE_S).stdout == "hi\n"
        with pytest.raises(DeviceLost):
            transport.shell(["true"], timeout_s=5)


@pytest.mark.parametrize("service", ["reboot:", "root:", "tcpip:5555", "host:kill", "shell:id"])
def test_only_what_a_session_needs_is_passed_on(offered: Path, tracker: Address, tmp_path: Path, service: str) -> None:
    with got(tracker, tmp_path) as device:
        assert isinstance(device.transport, RemoteTransport)
        with pytest.raises(AdbRefusal, match="offers no"):
            device.transport.open(service, Deadline(FENCE_S))


def test_whoever_does_not_name_the_key_is_shown_out(offered: Path, tracker: Address, tmp_path: Path) -> None:
    with got(tracker, tmp_path) as device:
        transport = device.transport
        assert isinstance(transport, RemoteTransport)
        stranger = RemoteTransport(transport.serial, 0, transport.root, address=transport.address, token="guess")
        with pytest.raises(DeviceLost, match="gave it to somebody else"):
            stranger.shell(["true"], timeout_s=FENCE_S)
        for noise in (b"", b"GET / HTTP/1.1\r\n\r\n", struct.pack("<ii", 0xFF271, 1 << 30)):
            with socket.create_connection(transport.address, 5) as connection:
                connection.sendall(noise)
        assert transport.shell(["echo", "still here"], timeout_s=FENCE_S).stdout == "still here\n"


@contextmanager
def offered_here(device: AdbDevice, told: list[str]) -> Iterator[Address]:
    """A device offered by threads of ours: enough for whoever does not call TVM meanwhile. The tracker."""
    from tvm.rpc.tracker import Tracker

    running = Tracker(LOOPBACK, port=20000, port_end=32000, silent=True)
    lender = Lender((LOOPBACK, running.port), LOOPBACK, "lab")
    stop = threading.Event()
    thread = threading.Thread(target=serve, args=(device, lender, lambda _, step: told.append(step), told.append, stop))
    thread.start()
    try:
        assert the_offer(lender.tracker).name == "virtual@lab"
        yield lender.tracker
    finally:
        stop.set()
        thread.join(30)
        running.terminate()


def test_a_device_that_dies_while_it_is_free_is_not_offered_until_it_answers(
    device: AdbDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead(*_: object, **__: object) -> None:
        raise DeviceLost("unplugged")

    monkeypatch.setattr(serving, "RETRY_S", 0.1)
    told: list[str] = []
    with offered_here(device, told) as tracker:
        with monkeypatch.context() as unplugged:
            unplugged.setattr(Adb, "shell", dead)
            for _ in Deadline(NEVER_S).attempts(0.05):
                if not offers(tracker):
                    break
        assert the_offer(tracker).name == "virtual@lab"
    assert "unplugged" in told
    assert "virtual@lab: is offered again" in told


def test_a_stream_may_be_silent_for_longer_than_a_greeting(
    device: AdbDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "DEADLINE_S", 0.3)
    with offered_here(device, []) as tracker, got(tracker, tmp_path) as remote:
        said = remote.transport.shell(["sh", "-c", "sleep 1; echo awake"], timeout_s=FENCE_S)
    assert said.stdout == "awake\n"


@contextmanager
def impostor(*answers: bytes) -> Iterator[Address]:
    """Something on a port of this host that is no tracker."""

    def answer() -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(ConnectionError):
            for data in answers:
                connection.recv(4096)
                connection.sendall(data)
            connection.recv(4096)

    with socket.create_server((LOOPBACK, 0)) as listener:
        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield LOOPBACK, listener.getsockname()[1]
        thread.join(10)


MAGIC = struct.pack("<i", 0x2F271)


def message(text: bytes) -> bytes:
    return struct.pack("<i", len(text)) + text


@pytest.mark.parametrize(
    "answers",
    [
        [b"HTTP/1.1 400 Bad Request\r\n\r\n"],
        [MAGIC, struct.pack("<i", 1 << 30)],
        [MAGIC, struct.pack("<i", -5)],
        [MAGIC, message(b"not json")],
        [MAGIC, message(b"[0]")],
        [MAGIC, message(b'[0, {"server_info": [{"no": "key"}]}]')],
        [MAGIC, message(b'[0, {"server_info": 7}]')],
        [],
    ],
)
def test_what_is_no_tracker_is_met_in_one_line(answers: list[bytes]) -> None:
    with impostor(*answers) as address, pytest.raises(RigFailure, match=r"tracker at 127\.0\.0\.1") as caught:
        offers(address, timeout_s=0.5)
    assert "\n" not in str(caught.value)


def test_servers_of_others_at_the_tracker_are_none_of_ours() -> None:
    foreign = b'[0, {"server_info": [{"key": "server:rasp3b", "addr": [null, 1]}, {"key": "server:adreno-bench/x", "adreno_bench": {"device": 7}}]}]'  # noqa: E501
    with impostor(MAGIC, message(foreign)) as address:
        assert offers(address) == []
