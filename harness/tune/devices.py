"""The devices of a search: one that this process holds, or several of a kind with a process each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from device_runner.device import Identity
from device_runner.failures import Failure
from harness.failures import UsageError
from harness.tune.tuner import Say, Spent, Tuner

if TYPE_CHECKING:
    from device_runner.device import ThermalLimits
    from harness.run.context import Run
    from harness.tune.dispatcher import Dispatcher

T = TypeVar("T")
Act = Callable[["Run", Say], T]
"""Something that is done on one device. It crosses to another process, so it is a function of a module, or a partial of
one."""

OF_EACH = ("serial", "memory_bytes", "opencl_told_by", "runtime")
"""What of an identity may differ between devices that share the trials of one search."""


class Devices(Protocol):
    """What a search needs of its devices."""

    @property
    def identity(self) -> Identity:
        """Of the first; the others differ in nothing that counts."""

    @property
    def count(self) -> int:
        """How many there still are."""

    @property
    def lost(self) -> Mapping[str, Failure]:
        """Those that were lost, and why."""

    def on_one(self, act: Act[T], patience_s: float) -> T:
        """Do this on one device, from beginning to end; with another one from the beginning if it is lost.

        Whoever says nothing for `patience_s` hangs. Raises what `act` raises, and DeviceLost if no device is left.
        """

    def search(self, limits: ThermalLimits, dispatcher: Dispatcher) -> dict[str, Spent]:
        """Try what is handed out, on whichever device is free; where the time of each went, by its name.

        A device that is lost costs the trial that it was at. Raises DeviceLost if none is left.
        """


class OneDevice:
    """A device that this process holds. It is `Devices`."""

    lost: Mapping[str, Failure] = {}
    count = 1

    def __init__(self, run: Run, say: Say) -> None:
        self._run = run
        self._say = say

    @property
    def identity(self) -> Identity:
        """As `Devices` says."""
        return self._run.device.identity

    def on_one(self, act: Act[T], patience_s: float) -> T:
        """As `Devices` says; the deadlines of the device's own calls are all there is."""
        return act(self._run, self._say)

    def search(self, limits: ThermalLimits, dispatcher: Dispatcher) -> dict[str, Spent]:
        """As `Devices` says; what was tried before the device was lost is kept, and the candidate comes again."""
        return {self._run.device.name: Tuner(self._run, limits, dispatcher, self._say).search()}


def require_alike(identities: Mapping[str, Identity]) -> None:
    """Raise UsageError, with the device and what differs, if these cannot share the trials of one search."""
    (first, known), *others = identities.items()
    for name, identity in others:
        for what, value in asdict(identity).items():
            if what not in OF_EACH and value != (there := getattr(known, what)):
                raise UsageError(
                    f"{name} cannot share trials with {first}: its {what} is {value or 'unknown'!r}, not "
                    f"{there or 'unknown'!r}",
                    hint="a search takes devices of one identity: tune on each kind by itself",
                )


def kind_key(identity: Identity) -> str:
    """Short stable text of what devices that share trials have in common: their identity less the handset."""
    return replace(identity, serial="").key
