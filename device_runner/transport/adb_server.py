"""The user's own adb server: which devices it knows, and whether it is worth starting."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from socket import create_connection

from device_runner.failures import Failure, LinkFailure
from device_runner.transport.adb import Adb

ANSWER_TIMEOUT_S = 3.0
START_TIMEOUT_S = 20.0
"""A start takes 3 s: the server scans the USB bus before it answers."""

USB_INTERFACES = Path("/sys/bus/usb/devices")
ADB_INTERFACE = ("ff", "42", "01")
"""USB class, subclass and protocol of adb (AOSP adb/client/usb_linux.cpp)."""


@dataclass(frozen=True)
class AdbEntry:
    """One device that the adb server knows."""

    serial: str
    state: str
    """adb's word: `device`, `offline`, `unauthorized`, `recovery`…"""
    tags: dict[str, str] = field(default_factory=dict)
    """What `adb devices -l` says: product, model, device, and on Linux `usb`, the path of the USB device."""


def default_port() -> int:
    """Port of the user's own adb server."""
    return int(os.environ.get("ANDROID_ADB_SERVER_PORT", "5037"))


def known_devices() -> list[AdbEntry]:
    """Return what the adb server knows; it is started first only if a phone hangs on this host's USB.

    Raises `LinkFailure` if a server is there and does not answer.
    """
    if not _answers():
        if not _phone_on_usb():
            return []
        _start()
    try:
        listed = Adb("", default_port()).ask_server("host:devices-l", timeout_s=ANSWER_TIMEOUT_S)
    except Failure as failure:
        message = f"the adb server on port {default_port()} does not answer: {failure.message}"
        raise LinkFailure(message, hint="restart it with `adb kill-server` and `adb start-server`") from failure
    return [_entry(*words) for line in listed.splitlines() if len(words := line.split()) > 1]


def _entry(serial: str, state: str, *tags: str) -> AdbEntry:
    return AdbEntry(serial, state, dict(tag.split(":", 1) for tag in tags if ":" in tag))


def usb_path(serial: str) -> str:
    """Return the path of the USB device (`1-2.3`) that a phone on this host is; empty if it is reached otherwise."""
    return next((entry.tags.get("usb", "") for entry in known_devices() if entry.serial == serial), "")


def revive(serial: str) -> None:
    """Start the user's adb server if it is dead; if it lives, restart it, but only if it serves nobody but `serial`.

    Raises `LinkFailure` if others use it, if it does not answer (then only a person may end it), or does not start.
    """
    if _answers():
        others = [entry.serial for entry in known_devices() if entry.serial != serial]
        if others:
            raise LinkFailure(
                f"the adb server serves other devices too ({', '.join(others)}), so it is not restarted",
                hint="restart it with `adb kill-server` and `adb start-server`",
            )
        _run("kill-server", ANSWER_TIMEOUT_S)
    _start()


def _answers() -> bool:
    try:
        create_connection(("127.0.0.1", default_port()), timeout=ANSWER_TIMEOUT_S).close()
    except OSError:
        return False
    return True


def _phone_on_usb() -> bool:
    names = ("bInterfaceClass", "bInterfaceSubClass", "bInterfaceProtocol")
    for interface in USB_INTERFACES.glob("*:*"):
        try:
            triple = tuple((interface / name).read_text().strip() for name in names)
        except OSError:
            continue  # unplugged while we look
        if triple == ADB_INTERFACE:
            return True
    return False


def _start() -> None:
    _run("start-server", START_TIMEOUT_S)


def _run(verb: str, timeout_s: float) -> None:
    from adbutils import adb_path

    command = [adb_path(), "-P", str(default_port()), verb]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=timeout_s)
    except subprocess.TimeoutExpired as error:
        raise LinkFailure(f"adb {verb} did not end within {timeout_s:g} s") from error
    except (OSError, subprocess.CalledProcessError) as error:
        evidence = str(getattr(error, "stderr", "") or "")
        raise LinkFailure(f"adb {verb} failed: {error}", evidence=evidence) from error
