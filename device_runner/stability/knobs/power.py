"""Fixed-performance mode: Android's own way to hold CPU and GPU at clocks that can be sustained, without root.

Source: AOSP PowerManagerShellCommand (API 30 and later). It sets a lower, sustainable clock, not the highest, and does
not stop overheating. Android cannot be asked for it, so the exit code has to do for reading it back, and what it is
after a boot for what it was.
"""

from __future__ import annotations

from dataclasses import dataclass

from device_runner.stability.knobs.base import PhoneAccess
from device_runner.transport.quoting import quoted

AFTER_BOOT = "false"


@dataclass(frozen=True)
class FixedPerformance:
    """`cmd power set-fixed-performance-mode-enabled`."""

    name: str = "fixed-performance"
    needs_root: bool = False

    def why_not(self, phone: PhoneAccess) -> str:
        """It is always allowed."""
        return ""

    def read(self, phone: PhoneAccess) -> str:
        """Nothing: the mode cannot be read."""
        return "true"

    def value(self, printed: str) -> str:
        """What `write` said that it set, else what it is after a boot."""
        return "true" if "true" in printed.split() else AFTER_BOOT

    def wanted(self, printed: str) -> str:
        """On."""
        return "true"

    def write(self, phone: PhoneAccess, value: str) -> str:
        """Fails if the power HAL does not have the mode; otherwise prints what was set."""
        return f"{quoted('cmd', 'power', 'set-fixed-performance-mode-enabled', value)} && {quoted('echo', value)}"
