"""What knobs need to know of a phone: whether we can be root on it, and whether adb reaches it over the network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device_runner.stability.knobs.base import PhoneAccess
from device_runner.stability.knobs.radio import over_network
from device_runner.transport.batch import run_batch

if TYPE_CHECKING:
    from device_runner.transport.base import Transport

ROOT_SHELLS = {
    "adbd": ("sh", "-c"),
    "su": ("su", "-c"),
    "su-root": ("su", "root", "sh", "-c"),
}
"""`adb root`; Magisk; userdebug builds."""


def probe(transport: Transport, *, system: str = "", wired: bool | None = None) -> PhoneAccess:
    """Ask a phone. `wired` overrides what its serial says of how adb reaches it. Raises `DeviceFailure`."""
    said = run_batch(
        transport,
        {
            "adbd": "id -u",
            "su": "su -c 'id -u'",
            "su-root": "su root id -u",
            "product": "getprop ro.product.device",
        },
    )
    root = next((shell for name, shell in ROOT_SHELLS.items() if said[name].text.strip() == "0"), ())
    network = over_network(transport.name) if wired is None else not wired
    return PhoneAccess(transport, root, network, said["product"].text.strip(), system)
