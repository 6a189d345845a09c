"""How much room is left on a device."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from device_runner.device import ShellResult
from device_runner.failures import DeviceFailure, RigFailure

ASK_S = 2.0
NEARLY_BYTES = 1 << 20
"""With less than this no program can be expected to run."""


class Shell(Protocol):
    """Whatever runs a command on a device."""

    def shell(self, command: Sequence[str], *, timeout_s: float) -> ShellResult:
        """Run it to its end."""


def free_bytes(device: Shell, folder: str) -> int | None:
    """Free bytes on the disk of a folder, as `df` tells; None if the device does not tell."""
    with suppress(DeviceFailure, RigFailure, IndexError, ValueError):
        told = device.shell(["df", "-k", folder], timeout_s=ASK_S).stdout
        return int(told.splitlines()[-1].split()[3]) * 1024
    return None


def megabytes(free: int) -> str:
    """For people."""
    return f"{free / 1e6:.1f} MB free"
