"""Restarting the user's adb server: only if that harms nobody. With the real one, on a port and a home of its own."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from device_runner.failures import DeviceLost, LinkFailure
from device_runner.stand_ins.virtual import VirtualPhone, private_adb
from device_runner.transport import adb_server
from device_runner.transport.adb import Adb

pytestmark = pytest.mark.device

PHONE = "R5CT30ABCDE"


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Where no server is yet."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    settings = {"ANDROID_ADB_SERVER_PORT": str(port), "HOME": str(tmp_path)}
    for name, value in {**settings, "ADB_USB": "0", "ADB_MDNS": "0", "ADB_EMU": "0"}.items():
        monkeypatch.setenv(name, value)
    yield port
    subprocess.run([private_adb.adb_binary(), "kill-server"], capture_output=True, timeout=60, check=False)


def server_on(port: int) -> int:
    """The process that listens there."""
    return next(
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.pid
        and connection.laddr
        and connection.laddr.port == port
        and connection.status == psutil.CONN_LISTEN
    )


def test_a_dead_server_is_started_and_a_living_one_that_serves_nobody_else_is_restarted(port: int) -> None:
    adb_server.revive(PHONE)
    first = server_on(port)
    adb_server.revive(PHONE)
    assert server_on(port) != first


def test_a_server_that_others_use_is_left_alone(port: int, phone: VirtualPhone) -> None:
    adb_server.revive(PHONE)
    server = server_on(port)
    Adb(phone.serial, port).find(timeout_s=60)
    with pytest.raises(LinkFailure, match=f"serves other devices too .{phone.serial}."):
        adb_server.revive(PHONE)
    assert server_on(port) == server


def test_a_server_that_does_not_answer_is_left_to_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adb_server, "ANSWER_TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(mute.getsockname()[1]))
        with pytest.raises(LinkFailure, match="does not answer") as caught:
            adb_server.revive(PHONE)
    assert "kill-server" in caught.value.hint


def test_a_device_is_dropped_and_found_again(phone: VirtualPhone) -> None:
    adb = Adb(phone.serial, phone.adb_server)
    adb.drop(timeout_s=60)
    with pytest.raises(DeviceLost, match="not found"):
        adb.shell(["true"], timeout_s=60)
    adb.find(timeout_s=60)
    assert adb.shell(["echo", "well"], timeout_s=60).stdout == "well\n"


@pytest.mark.parametrize(
    ("serial", "by_tcp"),
    [("R5CT30ABCDE", False), ("127.0.0.1:5555", True), ("adb-1234._adb-tls-connect._tcp", False), (":", False)],
)
def test_an_address_is_told_from_a_serial(serial: str, by_tcp: bool) -> None:
    assert Adb(serial, 1).by_tcp is by_tcp
