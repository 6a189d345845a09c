"""What we rely on adbd for, held to Android's own: a server lives as long as its stream, a pushed file arrives."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from adb_backends import backend
from waiting import eventually

from device_runner.deadline import Deadline
from device_runner.rpc_server.server import start_server
from device_runner.transport.adb_transport import AdbTransport

pytestmark = [pytest.mark.rest, pytest.mark.device]

SERVER = """
import os, signal, socket, sys, time
flags = dict(flag[2:].split("=", 1) for flag in sys.argv if "=" in flag)
listener = socket.create_server((flags["host"], int(flags["port"])))
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)
while True:
    connection, _ = listener.accept()
    connection.sendall(flags["key"].encode())
"""
"""Stands for `tvm_rpc`, with a worker that SIGTERM does not end."""


@pytest.fixture(scope="module", params=["ours", pytest.param("debian", marks=pytest.mark.adbd)])
def transport(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[AdbTransport]:
    with backend(request.param, tmp_path_factory.mktemp(request.param), pytestconfig) as device:
        yield AdbTransport(device.serial, device.adb_server, device.root)


@pytest.fixture
def command(transport: AdbTransport, tmp_path: Path) -> list[str]:
    """The server's command on the device."""
    program = tmp_path / "server.py"
    program.write_text(SERVER)
    pushed = transport.push(program, hashlib.sha256(program.read_bytes()).hexdigest(), timeout_s=60)
    return [sys.executable, "-I", "-S", pushed.path]


def running(transport: AdbTransport, command: list[str]) -> bool:
    """Whether any process of a server is left on the device; without a sandbox its shell sees those of the host."""
    program = command[-1]
    find = f"grep -l -e '{program[:-1]}[{program[-1]}]' /proc/[0-9]*/cmdline 2>/dev/null"  # does not find itself
    return bool(transport.shell(["sh", "-c", find], timeout_s=60).stdout)


def test_a_file_arrives_once(transport: AdbTransport, tmp_path: Path) -> None:
    file = tmp_path / "lib; x.so"
    file.write_bytes(os.urandom(300_000))
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    sent = [transport.push(file, sha256, timeout_s=60).sent_bytes for _ in range(2)]
    assert sent == [300_000, 0]


def test_a_server_and_its_stubborn_worker_end_when_it_is_stopped(transport: AdbTransport, command: list[str]) -> None:
    server, stream = start_server(transport, command, {}, Deadline(300))
    with stream:
        assert stream.recv(100).decode() == server.key
    assert running(transport, command)
    server.stop()
    assert not running(transport, command)


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_ends_with_the_run_that_started_it(
    transport: AdbTransport, command: list[str], sign: signal.Signals
) -> None:
    script = """
        import sys, time
        from device_runner.transport.adb_transport import AdbTransport
        from device_runner.deadline import Deadline
        from device_runner.rpc_server.server import start_server
        serial, port, root, *command = sys.argv[1:]
        server = start_server(AdbTransport(serial, int(port), root), command, {}, Deadline(300))
        print("started", flush=True)
        time.sleep(60)
    """
    arguments = [transport.serial, str(transport.server), transport.root, *command]
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *arguments], stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout
        assert run.stdout.readline() == "started\n"
        assert running(transport, command)
        run.send_signal(sign)
    assert eventually(lambda: not running(transport, command))
