"""The server's script and its life, with a small program in place of TVM's server and this host as the machine."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from waiting import eventually

from device_runner.deadline import Deadline
from device_runner.failures import RigFailure, SetupMissing
from device_runner.rpc_server.server import PORTS, SERVER_SCRIPT, Server, start_server
from device_runner.stand_ins.local import LocalTransport
from device_runner.stand_ins.virtual import userland

pytestmark = pytest.mark.rest

SOON_S = 60.0
"""Much longer than it takes, for machines that are busy with other things."""

PROGRAM = """
import os, signal, socket, subprocess, sys, time
flags = dict(flag[2:].split("=", 1) for flag in sys.argv[2:])
print("toggle", os.environ.get("CLML_TUNING_CACHE"), os.getcwd(), flush=True)
{at_first}
try:
    listener = socket.create_server((flags["host"], int(flags["port"])))
    print("Bind to", flags["host"] + ":" + flags["port"], flush=True)
except OSError:
    print("Bind to", flags["host"] + ":-1", flush=True)
    listener = socket.create_server((flags["host"], 0))
{when_listening}
while True:
    connection, _ = listener.accept()
    connection.sendall(os.environ["ADRENO_BENCH_RPC_KEY"].encode())
"""


class Machine:
    """This host, with a program that stands for `tvm_rpc`, and whatever shell and tools come first in `path`."""

    def __init__(self, root: Path, path: str) -> None:
        self.transport = LocalTransport(str(root), {"PATH": path})
        self._source = root / "program.py"
        self.command = [sys.executable, "-I", "-S", str(self._source)]
        self.behave()

    def behave(self, at_first: str = "", *, when_listening: str = "") -> None:
        self._source.write_text(PROGRAM.format(at_first=at_first, when_listening=when_listening))

    def start(self, toggles: dict[str, str] | None = None, timeout_s: float = SOON_S) -> tuple[Server, socket.socket]:
        return start_server(self.transport, self.command, toggles or {}, Deadline(timeout_s))


@pytest.fixture(params=["this host's", "a phone's", "Android 11's"])
def machine(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Machine]:
    """A machine with the shell and the tools of this host, or with mksh and toybox as phones have them."""
    path = os.defpath
    if request.param != "this host's":
        if reason := userland.why_not():
            pytest.skip(f"{reason} here: apt-get install mksh toybox")
        path = str(tmp_path_factory.mktemp("bin"))
        userland.install(Path(path), "11" if request.param == "Android 11's" else "14")
    yield Machine(tmp_path, path)
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


def test_a_server_that_dies_after_it_said_where_it_is_bound_is_not_started_elsewhere(
    machine: Machine, tmp_path: Path
) -> None:
    machine.behave("open('starts', 'a').write('x'); print('Bind to 127.0.0.1:9090', flush=True); sys.exit(4)")
    with pytest.raises(RigFailure, match="ended at once with code 4"):
        machine.start()
    assert (tmp_path / "starts").read_text() == "x"


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
    assert server.process.wait(SOON_S)
    assert server.process.code == 128 + signal.SIGKILL
    server.stop()


def test_what_is_left_of_the_server_holds_nothing_open_when_it_died(machine: Machine) -> None:
    """adbd sends the exit code after end of file on the one socket that is the shell's input and output."""
    machine.behave("sys.exit(3)")
    with _on_one_socket(machine) as (host, process):
        while host.recv(4096):
            pass
        assert process.wait(SOON_S) == 3


def test_a_broken_stream_ends_the_server_before_its_shell(machine: Machine, tmp_path: Path) -> None:
    """adbd then sends SIGHUP and closes the socket."""
    with _on_one_socket(machine) as (host, process):
        while b"Bind to" not in host.recv(4096):
            pass
        process.send_signal(signal.SIGHUP)
        host.close()
        process.wait(SOON_S)  # with any code, which nobody can read any more
        assert not _running(tmp_path)


@contextmanager
def _on_one_socket(machine: Machine) -> Iterator[tuple[socket.socket, subprocess.Popen[bytes]]]:
    """The script as adbd starts it, with the host's end of the socket that is its input and output."""
    host, shell = socket.socketpair()
    words = ["sh", "-c", SERVER_SCRIPT, "serve", machine.transport.root, "/dev/null", *machine.command, "server"]
    flags = ["--host=127.0.0.1", "--port=0", "--key=key"]
    environment = {**os.environ, **machine.transport.environment}
    io = shell.fileno()
    with host, subprocess.Popen([*words, *flags], stdin=io, stdout=io, stderr=io, env=environment) as process:
        shell.close()
        host.settimeout(SOON_S)
        yield host, process


def test_it_does_not_outlive_the_run_that_started_it(machine: Machine, tmp_path: Path) -> None:
    script = """
        import sys, time
        from device_runner.deadline import Deadline
        from device_runner.stand_ins.local import LocalTransport
        from device_runner.rpc_server.server import start_server
        server = start_server(LocalTransport(sys.argv[1]), sys.argv[2:], {}, Deadline(300))
        print("started", flush=True)
        time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(tmp_path), *machine.command]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout
        assert run.stdout.readline() == "started\n"
        run.send_signal(signal.SIGKILL)
