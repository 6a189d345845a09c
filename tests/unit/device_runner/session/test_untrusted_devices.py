"""What a device says is bounded, and a terminal does not obey it."""

from __future__ import annotations

import socket
import struct
from types import SimpleNamespace
from typing import Any

import pytest
from fake_adb import SERIAL, STDOUT, fake_adb, packet

from device_runner.device import ShellResult
from device_runner.failures import DeviceLost, RigFailure
from device_runner.session import rpc_session as session
from device_runner.transport import adb
from device_runner.transport.adb import Adb
from harness.base.terminal import plain
from harness.judge.report.screen import out

ESCAPES = "\x1b]0;title\x07\x1b[2J\x9b31m\x08\x00\r"


def test_a_command_that_never_stops_talking_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adb, "OUTPUT_LIMIT_BYTES", 1 << 20)
    sent: list[int] = []

    def endless(sock: socket.socket, _command: str) -> None:
        while True:
            sent.append(sock.send(packet(STDOUT, bytes(60_000))))

    with fake_adb({"shell,v2,raw": endless}) as server, pytest.raises(DeviceLost, match="prints more than 1 MiB"):
        Adb(SERIAL, server.port).shell(["yes"], timeout_s=300)


def test_a_packet_that_claims_to_be_huge_is_not_waited_for() -> None:
    def liar(sock: socket.socket, _command: str) -> None:
        sock.sendall(struct.pack("<BI", STDOUT, 0xFFFFFFFF))

    with fake_adb({"shell,v2,raw": liar}) as server, pytest.raises(DeviceLost, match="4294967295 bytes"):
        Adb(SERIAL, server.port).shell(["true"], timeout_s=300)


@pytest.mark.parametrize(("told", "refused"), [("67108865\n", True), ("12\n", False), ("", False), ("-1", False)])
def test_a_file_is_not_downloaded_if_it_is_too_large(told: str, refused: bool) -> None:
    def shell(command: list[str], *, timeout_s: float) -> ShellResult:
        assert command == ["stat", "-L", "-c", "%s", "/a; rm -rf $HOME"]
        return ShellResult(0, told, "")

    class NoRelay:
        def deadline(self, _seconds: float) -> Any:
            import contextlib

            return contextlib.nullcontext()

    opened = session.RpcSession.__new__(session.RpcSession)
    vars(opened).update(
        transport=SimpleNamespace(shell=shell, name="phone"),
        _relay=NoRelay(),
        _failure=None,
        remote=SimpleNamespace(download=lambda _path: bytearray(b"content")),
    )
    if refused:
        with pytest.raises(RigFailure, match="67108865 bytes, more than 64 MiB"):
            opened.download("/a; rm -rf $HOME", timeout_s=5)
    else:
        assert opened.download("/a; rm -rf $HOME", timeout_s=5) == b"content"


def test_a_terminal_obeys_nothing_that_a_device_said(capsys: pytest.CaptureFixture[str]) -> None:
    out(f"Adreno {ESCAPES} 750\n\tsecond line: é, 字")
    shown = capsys.readouterr().out
    assert shown.endswith("750\n\tsecond line: é, 字\n")
    assert not set(shown) & set("\x1b\x07\x9b\x08\x00\r")


def test_an_error_line_is_plain_too(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from harness import cli

    def fail() -> None:
        raise RigFailure(f"device said {ESCAPES}")

    monkeypatch.setattr(cli, "app", fail)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit):
        cli.main()
    assert "\x1b" not in capsys.readouterr().err
    assert plain("\u202etxt") == "\N{REPLACEMENT CHARACTER}txt"
