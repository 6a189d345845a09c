"""What the host of a device says of it: an offer to everybody, through the tracker, and a grant to its borrower."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from device_runner.device import DeviceEntry, Identity

PREFIX = "adreno-bench/"
"""Begins our keys at a tracker, which others may use, too."""

FIELD = "adreno_bench"
"""Field of a server's description at the tracker with our offer, beside TVM's `key` and `addr`."""


@dataclass(frozen=True)
class Offer:
    """One device that a host offers."""

    device: str
    """Name of the device on its host."""
    host: str
    identity: Identity
    used_by: str = ""
    """Who has it; empty if it is free."""

    @property
    def key(self) -> str:
        """Names its queue at the tracker, which is one for all devices of an identity."""
        return PREFIX + self.identity.key

    @property
    def name(self) -> str:
        """What records call it."""
        return f"{self.device}@{self.host}"


@dataclass(frozen=True)
class Grant:
    """The first message to the host that gets a device."""

    offer: Offer
    serial: str
    root: str
    """Our folder on the device."""
    token: str
    """What each further connection to a service of the device has to name."""
    tvm: str
    """Release of TVM on the host. A virtual device runs it; a phone runs what its user brings."""


def offer_of(value: Any) -> Offer | None:
    """Parse an offer that another host wrote; None for anything else."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(Offer).validate_python(value)
    except ValidationError:
        return None


def grant_of(value: Any) -> Grant:
    """Parse a grant that another host wrote. Raises ValueError."""
    from pydantic import TypeAdapter

    return TypeAdapter(Grant).validate_python(value)


def entry_of(offer: Offer) -> DeviceEntry:
    """Return the entry that `adreno-bench devices` lists."""
    detail = {"used by": offer.used_by} if offer.used_by else {}
    return DeviceEntry(offer.name, offer.identity.kind, "busy" if offer.used_by else "ready", detail)
