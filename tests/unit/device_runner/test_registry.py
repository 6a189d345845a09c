from __future__ import annotations

import contextlib
from pathlib import Path

import adbutils
import pytest

from device_runner.failures import LinkFailure, RigFailure
from device_runner.lease import lease
from device_runner.registry import UnknownDevice, list_devices, open_device, unknown
from device_runner.transport import adb_server
from device_runner.transport.adb_server import AdbEntry

PHONES = [
    AdbEntry("R5CT30ABCDE", "device", {"model": "SM_S918B"}),
    AdbEntry("emulator-5554", "offline"),
    AdbEntry("0A1B2C", "unauthorized"),
]


@pytest.fixture
def phones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adb_server, "known_devices", lambda: PHONES)


@pytest.mark.usefixtures("phones")
def test_every_device_is_listed_in_its_state(tmp_path: Path) -> None:
    listed = {entry.name: (entry.kind, entry.state) for entry in list_devices(tmp_path)}
    assert listed == {
        "virtual": ("virtual", "ready"),
        "local": ("local", "ready"),
        "R5CT30ABCDE": ("phone", "ready"),
        "emulator-5554": ("phone", "offline"),
        "0A1B2C": ("phone", "unauthorized"),
    }


@pytest.mark.usefixtures("phones")
def test_a_held_device_is_busy(tmp_path: Path) -> None:
    with lease("R5CT30ABCDE", tmp_path / "leases", timeout_s=0):
        entry = next(entry for entry in list_devices(tmp_path) if entry.name == "R5CT30ABCDE")
    assert entry.state == "busy"
    assert entry.detail["model"] == "SM_S918B"
    assert "process" in entry.detail["used by"]


@pytest.mark.usefixtures("phones")
@pytest.mark.parametrize(
    ("name", "hint"),
    [("r5ct30abcde", "there are: virtual, local, R5CT30ABCDE"), ("R5CT30ABCD", "did you mean 'R5CT30ABCDE'?")],
)
def test_an_unknown_device_is_met_with_names(tmp_path: Path, name: str, hint: str) -> None:
    with pytest.raises(UnknownDevice) as caught, open_device(name, tmp_path):
        pytest.fail("a device of this name")
    assert hint in caught.value.hint
    assert caught.value.outcome == "usage"


def test_where_no_phone_is_attached_a_serial_is_met_with_how_to_attach_one() -> None:
    hint = unknown("R5CT30", ["virtual", "local"]).hint
    assert "USB debugging" in hint
    assert "udev" in hint
    assert unknown("virtul", ["virtual", "local"]).hint == "did you mean 'virtual'?"


def test_without_a_server_and_without_a_phone_on_usb_no_server_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", "1")
    monkeypatch.setattr(adb_server, "USB_INTERFACES", tmp_path)
    monkeypatch.setattr(adbutils, "adb_path", lambda: pytest.fail("an adb server was started"))
    assert adb_server.known_devices() == []


def test_a_phone_on_usb_is_worth_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interface = tmp_path / "1-1:1.1"
    interface.mkdir()
    for name, value in zip(("Class", "SubClass", "Protocol"), ("ff", "42", "01"), strict=True):
        (interface / f"bInterface{name}").write_text(f"{value}\n")
    monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", "1")
    monkeypatch.setattr(adb_server, "USB_INTERFACES", tmp_path)
    monkeypatch.setattr(adbutils, "adb_path", lambda: str(tmp_path / "adb"))
    with pytest.raises(LinkFailure, match="adb start-server failed"):
        adb_server.known_devices()


def test_a_server_that_does_not_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(adb_server, "ANSWER_TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(mute.getsockname()[1]))
        with pytest.raises(RigFailure, match="does not answer"):
            adb_server.known_devices()


def test_a_server_that_drips_is_bounded_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte comes in time, and the whole never."""
    import socket
    import threading

    monkeypatch.setattr(adb_server, "ANSWER_TIMEOUT_S", 0.5)
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                connection.sendall(b"OKAYffff")
                while not ended.wait(0.05):
                    connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=drip, args=(listener,), daemon=True).start()
        monkeypatch.setenv("ANDROID_ADB_SERVER_PORT", str(listener.getsockname()[1]))
        with pytest.raises(RigFailure, match="does not answer"):
            adb_server.known_devices()
        ended.set()


def test_the_registry_needs_neither_tvm_nor_adb_to_be_imported() -> None:
    import subprocess
    import sys

    code = "import sys, device_runner.registry; print(sorted({'tvm', 'adbutils', 'numpy'} & set(sys.modules)))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "[]\n"
