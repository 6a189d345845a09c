"""Which boot of a machine this is, so that a reboot can be told from a process that died."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from device_runner.transport.base import Transport

BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""New in each boot (Linux, random(4))."""


def boot_of(transport: Transport, *, timeout_s: float) -> str:
    """The id of this boot, empty if the machine does not tell. Raises `Failure` if it does not answer."""
    return transport.shell(["cat", BOOT_ID], timeout_s=timeout_s).stdout.strip()
