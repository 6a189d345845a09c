"""What a knob is: one thing on a phone that can be set so that measurements repeat. And what knobs know of a phone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from device_runner.transport.batch import run_batch

if TYPE_CHECKING:
    from device_runner.transport.base import Transport


@dataclass(frozen=True)
class PhoneAccess:
    """What knobs have to know of the phone they are on."""

    transport: Transport
    root_shell: tuple[str, ...] = ()
    """Command that takes a script and runs it as root; empty on a phone that is not rooted, which is normal."""
    over_network: bool = False
    """Whether adb reaches the phone through its own radio."""
    product: str = ""
    """`ro.product.device`."""
    system: str = ""
    """Prefix of `/sys`; only a virtual phone that runs in a plain folder has one."""

    @property
    def gpu(self) -> str:
        """Folder of the GPU's kernel driver."""
        return f"{self.system}/sys/class/kgsl/kgsl-3d0"


@dataclass(frozen=True)
class Knob(ABC):
    """One tunable. Reading and writing are shell text, because they travel in batches; values are text.

    Values are quoted where they are written: those to restore come from a file on the phone.
    """

    name: str
    """What records call it, without spaces."""
    needs_root: ClassVar[bool] = False
    """Whether only root may write it."""

    def why_not(self, phone: PhoneAccess) -> str:
        """Return why it must be left alone on this phone; empty if it may be set."""
        return ""

    @abstractmethod
    def read(self, phone: PhoneAccess) -> str:
        """Shell text that prints its value, and whatever `wanted` has to know."""

    @abstractmethod
    def value(self, printed: str) -> str:
        """Return the value in what `read` printed; empty if it is not there."""

    @abstractmethod
    def wanted(self, printed: str) -> str:
        """Return the value to set; empty if this phone offers none."""

    @abstractmethod
    def write(self, phone: PhoneAccess, value: str) -> str:
        """Shell text that sets it and fails if it could not."""


_TLS_SERVICE = "._adb-tls-connect."
ROOT_SHELLS = {"adbd": ("sh", "-c"), "su": ("su", "-c"), "su-root": ("su", "root", "sh", "-c")}
"""`adb root`; Magisk; userdebug builds."""


def over_network(serial: str) -> bool:
    """Return whether adb reaches the device of this serial by TCP (`HOST:PORT`, or a service that was found by mDNS).

    A loopback address counts: what listens there may be a tunnel to a phone on Wi-Fi.
    """
    host, colon, port = serial.rpartition(":")
    return _TLS_SERVICE in serial or bool(colon and host and port.isdigit())


def probe(transport: Transport, *, system: str = "", wired: bool | None = None) -> PhoneAccess:
    """Ask a phone. `wired` overrides what its serial says of how adb reaches it. Raises `DeviceFailure`."""
    answers = run_batch(
        transport,
        {"adbd": "id -u", "su": "su -c 'id -u'", "su-root": "su root id -u", "product": "getprop ro.product.device"},
    )
    root = next((shell for name, shell in ROOT_SHELLS.items() if answers[name].text.strip() == "0"), ())
    network = over_network(transport.name) if wired is None else not wired
    return PhoneAccess(transport, root, network, answers["product"].text.strip(), system)
