"""Another user of this host against every server of ours, while a session with a device is open."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from waiting import FENCE_S

from device_runner.adb_device import AdbDevice
from device_runner.device import Device
from device_runner.registry import open_device
from device_runner.transport.adb_transport import AdbTransport

pytestmark = [
    pytest.mark.rest,
    pytest.mark.device,
    pytest.mark.skipif(os.getuid() != 0, reason="only root may start a process as another user"),
]

STRANGER = """
import json, socket, struct, sys
answers = {}
for port in json.loads(sys.argv[1]):
    for name, words in {"adb": b"000chost:version", "rpc": struct.pack("<ii", 0xFF271, 6) + b"client", "": b""}.items():
        try:
            client = socket.create_connection(("127.0.0.1", port), timeout=5)
            client.sendall(words)
            answers[f"{port} {name}"] = client.recv(64).decode("latin-1")
        except (ConnectionError, TimeoutError):  # a server that has its one client meets nobody else
            answers[f"{port} {name}"] = ""
for path in json.loads(sys.argv[2]):
    client = socket.socket(socket.AF_UNIX)
    try:
        client.connect(path)
        client.sendall(b"000chost:version")
        answers[path] = client.recv(64).decode("latin-1")
    except PermissionError:
        answers[path] = ""
print(json.dumps(answers))
"""


def as_stranger(ports: list[int], paths: list[Path], user: str = "nobody") -> dict[str, str]:
    """What each server answers to a process of another user; empty where no byte comes."""
    uid = pwd.getpwnam(user).pw_uid
    python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
    command = [python, "-I", "-S", "-c", STRANGER, json.dumps(ports), json.dumps([str(path) for path in paths])]
    done = subprocess.run(
        command, user=uid, group=uid, extra_groups=[], cwd="/", capture_output=True, timeout=FENCE_S, check=True
    )
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


def listening() -> list[int]:
    """The ports on which we and our children listen."""
    found = set[int]()
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with suppress(psutil.Error):
            found |= {one.laddr.port for one in process.net_connections("tcp") if one.status == psutil.CONN_LISTEN}
    return sorted(found)


@contextmanager
def session(name: str, cache: Path) -> Iterator[tuple[Device, list[int]]]:
    before = listening()
    with open_device(name, cache) as device, device.session({}, timeout_s=FENCE_S):
        yield device, [port for port in listening() if port not in before]


def test_no_server_of_the_virtual_device_answers_another_user(cache: Path) -> None:
    with session("virtual", cache) as (device, ports):
        assert isinstance(device, AdbDevice)
        assert isinstance(device.transport, AdbTransport)
        server = device.transport.server
        assert isinstance(server, Path)
        assert ports, "its daemon listens"
        answers = as_stranger(ports, [server])
        assert as_stranger([], [server], user="root")[str(server)].startswith("OKAY"), "and it answers us"
        assert device.transport.shell(["echo", "well"], timeout_s=FENCE_S).stdout == "well\n"
    assert len(answers) == 3 * len(ports) + 1
    assert {where: answer for where, answer in answers.items() if answer} == {}


@pytest.mark.long
def test_no_server_of_the_local_device_answers_another_user(cache: Path) -> None:
    with session("local", cache) as (_, ports):
        answers = as_stranger(ports, [])
    assert {where: answer for where, answer in answers.items() if answer} == {}
