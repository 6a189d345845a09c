"""The screen: awake, because Android slows down a phone that sleeps. A dark screen on which nothing moves costs little.

Source: AOSP PowerManagerService.dump (`mWakefulness`), KeyEvent (224 wakes, 223 sleeps).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from device_runner.stability.knobs.base import PhoneAccess

AWAKE = "Awake"
_KEY_WAKE, _KEY_SLEEP = 224, 223


@dataclass(frozen=True)
class Wakefulness:
    """Awake, dozing or asleep."""

    name: str = "screen"
    needs_root: bool = False

    def why_not(self, phone: PhoneAccess) -> str:
        """It is always allowed."""
        return ""

    def read(self, phone: PhoneAccess) -> str:
        """Prints a line with the wakefulness; some releases repeat it as a number."""
        return "dumpsys power | grep mWakefulness="

    def value(self, printed: str) -> str:
        """`Awake`, or `Asleep` for all kinds of rest."""
        found = re.search(r"\bmWakefulness=([A-Za-z]+)", printed)
        return "" if not found else AWAKE if found[1] == AWAKE else "Asleep"

    def wanted(self, printed: str) -> str:
        """Awake."""
        return AWAKE

    def write(self, phone: PhoneAccess, value: str) -> str:
        """Presses the key that wakes the phone, or the one that lets it sleep."""
        return f"input keyevent {_KEY_WAKE if value == AWAKE else _KEY_SLEEP}"
