"""Taking the power from a USB port and giving it back, which a phone notices that notices nothing else.

That needs a hub which switches each of its ports (few do) and `uhubctl`, which a person has to install and allow.
Only the port that the phone was found at is switched, and not if something else hangs there by now.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from device_runner.failures import RigFailure, SetupMissing

PROGRAM = "uhubctl"
OFF_S = 3
"""How long the port is without power."""
USB_DEVICES = Path("/sys/bus/usb/devices")
"""Linux: a folder for each device, by its path (Documentation/ABI/testing/sysfs-bus-usb)."""
PATH = re.compile(r"(\d+-\d+(?:\.\d+)*)")
"""`1-2.3`: bus 1, port 2 of its root hub, port 3 of the hub that hangs there."""


def hub_and_port(path: str) -> tuple[str, str]:
    """Return hub and port of a device as `uhubctl` names them: of `1-2.3` hub `1-2`, of `1-2` hub `1`.

    Raises ValueError for what is no path of a USB device.
    """
    if not PATH.fullmatch(path):
        raise ValueError(f"{path!r} is no path of a USB device")
    hub, _, port = path.rpartition("." if "." in path else "-")
    return hub, port


def cycle(path: str, serial: str, timeout_s: float, *, devices: Path = USB_DEVICES) -> None:
    """Switch the port at `path` off and on. Raises SetupMissing without `uhubctl`, RigFailure if it cannot."""
    hub, port = hub_and_port(path)
    program = shutil.which(PROGRAM)
    if not program:
        raise SetupMissing(f"{PROGRAM} is not installed", hint="install the package of that name")
    if (there := _serial_at(devices / path)) not in ("", serial):
        raise RigFailure(f"{there} hangs on USB port {port} of hub {hub} by now, not {serial}")
    command = [program, "-l", hub, "-p", port, "-a", "cycle", "-d", str(OFF_S)]
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
        raise RigFailure(f"{PROGRAM} did not end within {timeout_s:g} s") from None
    if done.returncode:
        said = done.stdout.decode(errors="replace").strip()
        why = said.splitlines()[0][:200] if said else f"it ended with code {done.returncode}"
        hint = f"`{PROGRAM}` lists the hubs that can; it may need a udev rule"
        raise RigFailure(f"{PROGRAM} cannot switch port {port} of hub {hub}: {why}", hint=hint, evidence=said)


def _serial_at(device: Path) -> str:
    try:
        return (device / "serial").read_text().strip()
    except OSError:
        return ""
