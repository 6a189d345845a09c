"""The server's script and its life, with a small program in place of TVM's server and this host as the machine."""

from __future__ import annotations

import secrets
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from waiting import eventually

from device_runner.deadline import Deadline
from device_runner.failures import RigFailure, SetupMissing
from device_runner.local import LocalTransport
from device_runner.rpc_server.server import PORTS, Server, start_server

PROGRAM = """
import os, signal, socket, subprocess, sys, time
flags = dict(flag[2:].split("=", 1) for flag in sys.argv[2:])
print("toggle", os.environ.get("CLML_TUNING_CACHE"), os.getcwd(), flush=True)
{at_first}
listener = socket.create_server((flags["host"], int(flags["port"])))
{when_listening}
while True:
    connection, _ = listener.accept()
    connection.sendall(flags["key"].encode())
"""


class Machine:
    """This host, with a program that stands for `tvm_rpc`."""

    def __init__(self, root: Path) -> None:
        self.transport = LocalTransport(str(root))
        self._source = root / "program.py"
        self.command = [sys.executable, "-I", "-S", str(self._source)]
        self.behave()

    def behave(self, at_first: str = "", *, when_listening: str = "") -> None:
        self._source.write_text(PROGRAM.format(at_first=at_first, when_listening=when_listening))

    def start(self, toggles: dict[str, str] | None = None, timeout_s: float = 10) -> tuple[Server, socket.socket]:
        return start_server(self.transport, self.command, toggles or {}, Deadline(timeout_s))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    yield Machine(tmp_path)
    assert eventually(lambda: not _running(tmp_path)), _running(tmp_path)


def _running(root: Path) -> list[list[str]]:
    """Command lines of processes that mention the program: none may be left."""
    found = (process.info["cmdline"] for process in psutil.process_iter(["cmdline"]))
    return [command for command in found if command and any(str(root / "program.py") in word for word in command)]


def test_it_is_ready_when_it_listens_and_gone_when_it_is_stopped(machine: Machine, tmp_path: Path) -> None:
    server, stream = machine.start()
    with stream:
        assert stream.recv(100).decode() == server.key
    assert len(_running(tmp_path)) >= 1
    server.stop()


def test_it_gets_its_toggles_and_runs_in_its_folder(machine: Machine, tmp_path: Path) -> None:
    server, stream = machine.start({"CLML_TUNING_CACHE": "/a b;$c"})
    stream.close()
    server.stop()
    assert f"\ntoggle /a b;$c {tmp_path}\n" in server.process.output()


def test_a_toggle_must_be_a_variable(machine: Machine) -> None:
    with pytest.raises(ValueError, match="environment variable"):
        machine.start({"-i": "x"})


def test_a_server_that_ends_at_once_shows_its_log(machine: Machine) -> None:
    machine.behave("sys.exit('libOpenCL.so: wrong ELF class')")
    with pytest.raises(RigFailure, match="ended at once with code 1") as caught:
        machine.start()
    assert "wrong ELF class" in caught.value.evidence


def test_a_server_that_dies_by_signal_is_told_from_one_that_exits(machine: Machine) -> None:
    machine.behave("os.kill(os.getpid(), signal.SIGSEGV)")
    with pytest.raises(RigFailure, match="with code 139"):
        machine.start()


def test_a_machine_without_the_program_is_missing_a_setup(machine: Machine) -> None:
    machine.command = ["tvm_rpc_of_another_world"]
    with pytest.raises(SetupMissing, match="tvm_rpc_of_another_world"):
        machine.start()


def test_a_server_that_never_listens_is_bounded(machine: Machine) -> None:
    machine.behave("time.sleep(60)")
    with pytest.raises(RigFailure, match="did not listen within 1 s"):
        machine.start(timeout_s=1)


def test_a_taken_port_is_avoided(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    listening, bound = socket.create_server(("127.0.0.1", 0)), socket.socket()
    bound.bind(("127.0.0.1", 0))  # taken, though nothing answers there: only the server itself can find out
    taken = [listening.getsockname()[1], bound.getsockname()[1]]
    choose = secrets.choice
    monkeypatch.setattr(secrets, "choice", lambda ports: taken.pop() if taken else choose(ports))
    with listening, bound:
        server, stream = machine.start()
    stream.close()
    server.stop()
    assert server.port in PORTS
    assert not taken


def test_stopping_ends_workers_that_refuse_to(machine: Machine) -> None:
    machine.behave(
        "child = subprocess.Popen([sys.executable, '-c', 'import signal, time; "
        'signal.signal(signal.SIGTERM, signal.SIG_IGN); print("deaf", flush=True); time.sleep(60)\', __file__],'
        " stdout=subprocess.PIPE)\nassert child.stdout.readline()"
    )
    server, stream = machine.start()
    stream.close()
    server.stop()


def test_a_server_that_died_leaves_no_workers(machine: Machine) -> None:
    machine.behave(
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)', __file__])",
        when_listening="connection, _ = listener.accept()\nos.kill(os.getpid(), signal.SIGKILL)",
    )
    server, stream = machine.start()
    stream.close()
    assert server.process.wait(10)
    assert server.process.code == 128 + signal.SIGKILL
    server.stop()


def test_it_does_not_outlive_the_run_that_started_it(machine: Machine, tmp_path: Path) -> None:
    script = """
        import sys, time
        from device_runner.deadline import Deadline
        from device_runner.local import LocalTransport
        from device_runner.rpc_server.server import start_server
        server = start_server(LocalTransport(sys.argv[1]), sys.argv[2:], {}, Deadline(10))
        print("started", flush=True)
        time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path), *machine.command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        assert run.stdout.readline() == "started\n"
        run.send_signal(signal.SIGKILL)
