"""What is done to a machine that was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device_runner.failures import DeviceLost
from device_runner.recovery.ladder import Rung

if TYPE_CHECKING:
    from device_runner.transport import Transport

LOOK_S = 2.0

LOOK_SCRIPT = """
rm -rf "$1/scratch" "$1/files"/*.tmp.* 2>/dev/null
echo well
"""
"""Argument: our folder. What a lost session left in it goes: a device has one user at a time."""


def look(transport: Transport, timeout_s: float) -> None:
    """Return if the machine answers, and tidy up after the session that was lost. Raises `Failure`."""
    said = transport.shell(["sh", "-c", LOOK_SCRIPT, "look", transport.root], timeout_s=timeout_s).stdout
    if said.strip() != "well":
        raise DeviceLost(f"{transport.name} answers, but not what it is asked: {said[:80]!r}")


def retry(transport: Transport) -> Rung:
    """Try again in a session of its own, if the machine answers as it is."""
    return Rung("retry", LOOK_S, lambda timeout_s: look(transport, timeout_s))
