"""Android's own settings: stay awake, animations, brightness.

Source: AOSP SettingsService (`settings get|put|delete NAMESPACE KEY`); android.provider.Settings for the keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from device_runner.stability.knobs.base import PhoneAccess
from device_runner.transport.quoting import quoted

UNSET = "null"


@dataclass(frozen=True)
class Setting:
    """One key of the settings provider, which the shell user may write."""

    name: str
    namespace: str
    key: str
    target: str
    needs_root: bool = False

    def why_not(self, phone: PhoneAccess) -> str:
        """It is always allowed."""
        return ""

    def read(self, phone: PhoneAccess) -> str:
        """Prints the value, or `null`."""
        return f"settings get {self.namespace} {self.key}"

    def value(self, printed: str) -> str:
        """The last line."""
        return (printed.split() or [UNSET])[-1]

    def wanted(self, printed: str) -> str:
        """The same on every phone."""
        return self.target

    def write(self, phone: PhoneAccess, value: str) -> str:
        """Sets it; what was not there before is deleted."""
        if value == UNSET:
            return f"settings delete {self.namespace} {self.key}"
        return quoted("settings", "put", self.namespace, self.key, value)


STAY_AWAKE = Setting("stay-awake", "global", "stay_on_while_plugged_in", "7")
"""On mains, USB and wireless power: what `svc power stayon true` writes."""

ANIMATIONS = tuple(
    Setting(key.replace("_", "-"), "global", key, "0")
    for key in ("window_animation_scale", "transition_animation_scale", "animator_duration_scale")
)

BRIGHTNESS = (
    Setting("brightness-mode", "system", "screen_brightness_mode", "0"),
    Setting("brightness", "system", "screen_brightness", "1"),
)
"""By hand, and as dark as it gets: on some phones 0 switches the backlight off."""
