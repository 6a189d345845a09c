"""Airplane mode: no calls, no mail, no synchronising in the middle of a sample. Never when adb comes by radio itself.

Source: AOSP ConnectivityService, shell command `airplane-mode` (API 30 and later).
"""

from __future__ import annotations

from dataclasses import dataclass

from device_runner.stability.knobs.base import PhoneAccess

_WORDS = {"enabled": "enable", "disabled": "disable"}
_TLS_SERVICE = "._adb-tls-connect."


@dataclass(frozen=True)
class AirplaneMode:
    """`enabled` or `disabled`."""

    name: str = "airplane-mode"
    needs_root: bool = False

    def why_not(self, phone: PhoneAccess) -> str:
        """Over the network it would cut off adb itself."""
        return "adb reaches this phone through its network" if phone.over_network else ""

    def read(self, phone: PhoneAccess) -> str:
        """Prints `enabled` or `disabled`."""
        return "cmd connectivity airplane-mode"

    def value(self, printed: str) -> str:
        """`enabled` or `disabled`, if it printed one of them."""
        word = (printed.split() or [""])[-1]
        return word if word in _WORDS else ""

    def wanted(self, printed: str) -> str:
        """`enabled`, if the phone has the command."""
        return "enabled" if self.value(printed) else ""

    def write(self, phone: PhoneAccess, value: str) -> str:
        """Turns it on or off."""
        return f"cmd connectivity airplane-mode {_WORDS.get(value, 'disable')}"


def over_network(serial: str) -> bool:
    """Whether adb reaches the device of this serial by TCP (`HOST:PORT`, or a service that was found by mDNS).

    A loopback address counts: what listens there may be a tunnel to a phone on Wi-Fi.
    """
    host, colon, port = serial.rpartition(":")
    return _TLS_SERVICE in serial or bool(colon and host and port.isdigit())
