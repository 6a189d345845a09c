"""Whose a connection is, asked of the kernel with real sockets, and with real processes of another user."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from waiting import LONG_S

from device_runner.deadline import Deadline
from device_runner.private_sockets import is_foreign
from device_runner.rpc_server.server import start_server
from device_runner.session.relay import Relay
from device_runner.stand_ins.local import LocalTransport

CLIENT = """
import socket, sys
source, port, *words = sys.argv[1:]
client = socket.socket(socket.AF_INET6 if ":" in source else socket.AF_INET)
client.bind((source, 0))
client.connect(("::ffff:127.0.0.1" if ":" in source else "127.0.0.1", int(port)))
client.sendall(b"hello")
if "close" in words:
    client.close()
print("done", flush=True)
sys.stdin.read()
"""
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root may start a process as another user")


def system_python() -> str:
    """A Python that every user may run; ours may lie in a folder of one user's."""
    found = Path("/usr/bin/python3")
    return str(found) if found.exists() else sys.executable


@contextmanager
def client_of(port: int, *words: str, user: str = "", source: str = "127.0.0.1") -> Iterator[None]:
    """A process that has sent `hello`, of the user with that name."""
    uid = pwd.getpwnam(user).pw_uid if user else None
    command = [system_python() if user else sys.executable, "-I", "-S", "-c", CLIENT, source]
    command += [str(port), *words]
    with subprocess.Popen(
        command, user=uid, group=uid, extra_groups=None, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as client:
        assert client.stdout
        assert client.stdout.readline() == b"done\n"
        yield


def judged(*words: str, user: str = "", source: str = "127.0.0.1") -> bool:
    """Whether such a client is foreign."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        listener.settimeout(LONG_S)
        with client_of(port, *words, user=user, source=source):
            return _judged(listener)


def _judged(listener: socket.socket) -> bool:
    connection, _ = listener.accept()
    with connection:
        assert connection.recv(5, socket.MSG_WAITALL) == b"hello"
        return is_foreign(connection)


def test_a_client_of_the_same_user_is_no_stranger() -> None:
    assert not judged()


@needs_root
@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.2", "::ffff:127.0.0.1"])
def test_a_client_of_another_user_is_a_stranger_wherever_it_comes_from(source: str) -> None:
    assert judged(user="nobody", source=source)


@needs_root
def test_another_user_who_has_left_before_it_is_met_is_a_stranger() -> None:
    assert judged("close", user="nobody")


def test_who_has_left_is_a_stranger() -> None:
    assert judged("close")


def test_a_connection_that_is_closed_has_nobody_of_ours_behind_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        connection, _ = listener.accept()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        with connection:
            assert is_foreign(connection)


@needs_root
def test_the_relay_leads_no_other_user_to_its_stream() -> None:
    device, stream = socket.socketpair()
    with device, Relay(stream) as relay, client_of(relay.port, user="nobody"):
        device.settimeout(LONG_S)
        with socket.create_connection(("127.0.0.1", relay.port), LONG_S) as own:
            own.sendall(b"own")
            assert device.recv(64) == b"own"


def test_no_key_stands_on_a_servers_command_line() -> None:
    program = (
        "import os, socket, sys, time\n"
        "flags = dict(flag[2:].split('=', 1) for flag in sys.argv[2:])\n"
        "listener = socket.create_server((flags['host'], int(flags['port'])))\n"
        "time.sleep(600)\n"
    )
    transport = LocalTransport("/tmp")
    server, stream = start_server(transport, [sys.executable, "-I", "-S", "-c", program], {}, Deadline(LONG_S))
    with stream:
        lines = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
    server.stop()
    assert any(f"--port={server.port}" in line for line in lines)
    assert not any(server.key in line for line in lines)
