"""What is done to a machine that was lost, gentlest first.

How an adb server behaves: `host:disconnect` forgets a device that is reached by TCP until `host:connect`; a USB device
comes back by itself after `reconnect`; what the server answers to either proves nothing, only a command that ends does
(AOSP packages/modules/adb, transport.cpp and SERVICES.TXT).

Taking the power from its USB port is noticed by a phone that notices nothing else. That needs a hub which switches each
of its ports (few do) and `uhubctl`, which a person has to install and allow. Only the port that the phone was found at
is switched, and not if something else hangs there by now.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from device_runner.deadline import Deadline
from device_runner.device import Permission, Rung
from device_runner.failures import DeviceLost, RigFailure, SetupMissing
from device_runner.transport.adb_transport import AdbTransport
from device_runner.transport.base import Transport, boot_of

LOOK_S = 2.0
RECONNECT_S = 30.0
"""Time to wait for an unplugged device, or for somebody to press its button."""
RESTART_S = 30.0
USB_POWER_S = 60.0
REBOOT_S = 180.0
POLL_S = 0.5
LEAST_S = 0.1
"""What a look gets however little is left."""

LOOK_SCRIPT = """
rm -rf "$1/scratch" "$1/files"/*.tmp.* 2>/dev/null
if command -v getprop >/dev/null && [ "$(getprop sys.boot_completed)" != 1 ]; then echo booting; else echo well; fi
"""
"""Argument: our folder. What a lost session left in it goes: a device has one user at a time."""


def retry(transport: Transport) -> Rung:
    """Try again in a session of its own, if the machine answers as it is."""
    return Rung("retry", LOOK_S, partial(look, transport))


def adb_rungs(adb: AdbTransport, restart_server: Callable[[], None], usb: str = "") -> list[Rung]:
    """Return all that can be done for a device behind an adb server; `usb` is the path of the USB device that it is."""
    switch = partial(switch_port, usb, adb.serial)
    power = [Rung("USB power", USB_POWER_S, partial(wait_after, switch, adb), needs=Permission.USB_POWER)]
    return [
        Rung("retry", LOOK_S, partial(find_once, adb)),
        Rung("reconnect", RECONNECT_S, partial(reconnect, adb)),
        Rung("restart adb", RESTART_S, partial(wait_after, lambda _: restart_server(), adb)),
        *(power if usb else ()),
        Rung("reboot", REBOOT_S, partial(reboot, adb), needs=Permission.REBOOT),
    ]


def look(transport: Transport, timeout_s: float) -> None:
    """Check that the machine answers, and tidy up after the lost session. Raises `Failure`."""
    answer = transport.shell(["sh", "-c", LOOK_SCRIPT, "look", transport.root], timeout_s=timeout_s).stdout
    if answer.strip() != "well":
        raise DeviceLost(f"{transport.name} answers, but is not ready: {answer.strip()[:80]!r}")


def find(adb: AdbTransport, timeout_s: float) -> None:
    """Look, through a server that may have forgotten a device that is reached by TCP. Raises `Failure`."""
    deadline = Deadline(timeout_s)
    adb.find(timeout_s=timeout_s)
    look(adb, max(deadline.remaining_s, LEAST_S))


def find_once(adb: AdbTransport, timeout_s: float) -> None:
    """Find it or have the server forget it, which would else look for it in its own slow rhythm. Raises `Failure`."""
    try:
        find(adb, timeout_s)
    except DeviceLost:
        if adb.by_tcp:
            _drop(adb)
        raise


def reconnect(adb: AdbTransport, timeout_s: float) -> None:
    """Have the adb server drop the device and find it again; wait until it answers. Raises `Failure`."""
    wait_after(lambda _: _drop(adb), adb, timeout_s)


def wait_after(act: Callable[[float], None], adb: AdbTransport, timeout_s: float) -> None:
    """Do what may bring the device back, and wait until it answers, all in so many seconds. Raises `Failure`."""
    deadline = Deadline(timeout_s)
    act(timeout_s)
    wait_for(adb, deadline)


def reboot(adb: AdbTransport, timeout_s: float) -> None:
    """Reboot a device that answers and wait until Android is up again. Raises `Failure`."""
    deadline = Deadline(timeout_s)
    before = boot_of(adb, timeout_s=LOOK_S)
    adb.reboot(timeout_s=LOOK_S)
    wait_for(adb, deadline, lambda: boot_of(adb, timeout_s=LOOK_S) != before)


def wait_for(adb: AdbTransport, deadline: Deadline, ready: Callable[[], bool] = lambda: True) -> None:
    """Look until the device answers and is `ready`. Raises `DeviceLost`, or `LinkFailure` at once without a server."""
    lost = DeviceLost(f"device {adb.serial} is not ready {deadline.seconds:g} s later")
    for _ in deadline.attempts(POLL_S):
        try:
            find(adb, max(min(LOOK_S, deadline.remaining_s), LEAST_S))
            if ready():
                return
        except DeviceLost as failure:
            lost = failure
    raise lost


def _drop(adb: AdbTransport) -> None:
    with suppress(DeviceLost):
        adb.drop(timeout_s=LOOK_S)


UHUBCTL = "uhubctl"
USB_OFF_S = 3
"""How long the port is without power."""
USB_DEVICES = Path("/sys/bus/usb/devices")
"""Linux: a folder for each device, by its path (Documentation/ABI/testing/sysfs-bus-usb)."""
USB_PATH = re.compile(r"(\d+-\d+(?:\.\d+)*)")
"""`1-2.3`: bus 1, port 2 of its root hub, port 3 of the hub that hangs there."""


def hub_and_port(path: str) -> tuple[str, str]:
    """Return hub and port of a device as `uhubctl` names them: of `1-2.3` hub `1-2`, of `1-2` hub `1`.

    Raises ValueError for what is no path of a USB device.
    """
    if not USB_PATH.fullmatch(path):
        raise ValueError(f"{path!r} is no path of a USB device")
    hub, _, port = path.rpartition("." if "." in path else "-")
    return hub, port


def switch_port(path: str, serial: str, timeout_s: float, *, devices: Path = USB_DEVICES) -> None:
    """Switch the port at `path` off and on. Raises SetupMissing without `uhubctl`, RigFailure if it cannot."""
    hub, port = hub_and_port(path)
    program = shutil.which(UHUBCTL)
    if not program:
        raise SetupMissing(f"{UHUBCTL} is not installed", hint=f"sudo apt-get install {UHUBCTL}")
    if (there := _serial_at(devices / path)) not in ("", serial):
        raise RigFailure(f"{there} is on USB port {port} of hub {hub} now, not {serial}")
    command = [program, "-l", hub, "-p", port, "-a", "cycle", "-d", str(USB_OFF_S)]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise RigFailure(f"{UHUBCTL} did not end within {timeout_s:g} s") from None
    if done.returncode:
        message = done.stdout.decode(errors="replace").strip()
        why = message.splitlines()[0][:200] if message else f"it ended with code {done.returncode}"
        hint = f"`{UHUBCTL}` lists the hubs that can; it may need a udev rule"
        raise RigFailure(f"{UHUBCTL} cannot switch port {port} of hub {hub}: {why}", hint=hint, evidence=message)


def _serial_at(device: Path) -> str:
    try:
        return (device / "serial").read_text().strip()
    except OSError:
        return ""
