"""Knobs of Android's own: settings, the screen, airplane mode, and fixed-performance mode.

Sources, all of AOSP: SettingsService (`settings get|put|delete NAMESPACE KEY`) and android.provider.Settings for the
keys; PowerManagerService.dump (`mWakefulness`) and KeyEvent (224 wakes, 223 sleeps); ConnectivityService, shell command
`airplane-mode`, and PowerManagerShellCommand (both API 30 and later).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from device_runner.stability.knobs.base import Knob, PhoneAccess
from device_runner.transport.quoting import quoted

UNSET = "null"


@dataclass(frozen=True)
class Setting(Knob):
    """One key of the settings provider, which the shell user may write."""

    namespace: str
    key: str
    target: str

    def read(self, phone: PhoneAccess) -> str:
        """Print the value, or `null`."""
        return f"settings get {self.namespace} {self.key}"

    def value(self, printed: str) -> str:
        """Return the last line."""
        return (printed.split() or [UNSET])[-1]

    def wanted(self, printed: str) -> str:
        """Return the target, which is the same on every phone."""
        return self.target

    def write(self, phone: PhoneAccess, value: str) -> str:
        """Set it; what was not there before is deleted."""
        if value == UNSET:
            return f"settings delete {self.namespace} {self.key}"
        return quoted("settings", "put", self.namespace, self.key, value)


STAY_AWAKE = Setting("stay-awake", "global", "stay_on_while_plugged_in", "7")
"""Stay awake on mains, USB and wireless power: the value that `svc power stayon true` writes."""

ANIMATIONS = tuple(
    Setting(key.replace("_", "-"), "global", key, "0")
    for key in ("window_animation_scale", "transition_animation_scale", "animator_duration_scale")
)

BRIGHTNESS = (
    Setting("brightness-mode", "system", "screen_brightness_mode", "0"),
    Setting("brightness", "system", "screen_brightness", "1"),
)
"""Manual brightness, as dark as possible: on some phones 0 switches the backlight off."""


AWAKE = "Awake"
_KEY_WAKE, _KEY_SLEEP = 224, 223


@dataclass(frozen=True)
class Wakefulness(Knob):
    """The screen: awake, because Android slows down a phone that sleeps. A dark one that stands still costs little."""

    name: str = "screen"

    def read(self, phone: PhoneAccess) -> str:
        """Print a line with the wakefulness; some releases repeat it as a number."""
        return "dumpsys power | grep mWakefulness="

    def value(self, printed: str) -> str:
        """`Awake`, or `Asleep` for all kinds of rest."""
        match = re.search(r"\bmWakefulness=([A-Za-z]+)", printed)
        return "" if not match else AWAKE if match[1] == AWAKE else "Asleep"

    def wanted(self, printed: str) -> str:
        """Awake."""
        return AWAKE

    def write(self, phone: PhoneAccess, value: str) -> str:
        """Press the key that wakes the phone, or the one that lets it sleep."""
        return f"input keyevent {_KEY_WAKE if value == AWAKE else _KEY_SLEEP}"


_WORDS = {"enabled": "enable", "disabled": "disable"}


@dataclass(frozen=True)
class AirplaneMode(Knob):
    """No calls, no mail, no synchronising in the middle of a sample. Never when adb comes by radio itself."""

    name: str = "airplane-mode"

    def why_not(self, phone: PhoneAccess) -> str:
        """Refuse over the network: it would cut off adb itself."""
        return "adb reaches this phone through its network" if phone.over_network else ""

    def read(self, phone: PhoneAccess) -> str:
        """Print `enabled` or `disabled`."""
        return "cmd connectivity airplane-mode"

    def value(self, printed: str) -> str:
        """Return `enabled` or `disabled`, if it printed one of them."""
        word = (printed.split() or [""])[-1]
        return word if word in _WORDS else ""

    def wanted(self, printed: str) -> str:
        """Return `enabled`, if the phone has the command."""
        return "enabled" if self.value(printed) else ""

    def write(self, phone: PhoneAccess, value: str) -> str:
        """Turn it on or off."""
        return f"cmd connectivity airplane-mode {_WORDS.get(value, 'disable')}"


AFTER_BOOT = "false"


@dataclass(frozen=True)
class FixedPerformance(Knob):
    """Fixed-performance mode: holds CPU and GPU at clocks that can be sustained, without root.

    It sets a lower clock, not the highest, and does not stop overheating. Android cannot be asked for it, so the exit
    code has to do for reading it back, and what it is after a boot for what it was.
    """

    name: str = "fixed-performance"

    def read(self, phone: PhoneAccess) -> str:
        """Nothing: the mode cannot be read."""
        return "true"

    def value(self, printed: str) -> str:
        """Return what `write` said that it set, else what it is after a boot."""
        return "true" if "true" in printed.split() else AFTER_BOOT

    def wanted(self, printed: str) -> str:
        """On."""
        return "true"

    def write(self, phone: PhoneAccess, value: str) -> str:
        """Set it and print what was set; fail if the power HAL does not have the mode."""
        return f"{quoted('cmd', 'power', 'set-fixed-performance-mode-enabled', value)} && {quoted('echo', value)}"
