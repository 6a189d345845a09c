"""Everything that keeps one phone steady, from its first measurement until it is given back."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from device_runner.device import Steadiness, T, ThermalLimits
from device_runner.failures import Failure
from device_runner.stability import knobs
from device_runner.stability.cooling import wait_until_cool
from device_runner.stability.judge import judge
from device_runner.stability.reading import Reading, reading
from device_runner.stability.sources import BOOT, Sources

if TYPE_CHECKING:
    from device_runner.transport.base import Transport

log = logging.getLogger(__name__)


class Keeper:
    """Holds the knobs of a phone from its first measurement until `close`.

    They are not turned for each case: some take a phone tens of milliseconds, and a screen that goes on and off is no
    steady state.
    """

    def __init__(self, transport: Transport, *, system: str = "", wired: bool | None = None) -> None:
        self._transport = transport
        self._system = system
        self._wired = wired
        self.sources = Sources(transport, system)
        self._report: knobs.Report | None = None
        self._boot: str | None = None
        self.reset_count: int | None = None
        """How often the GPU had been reset when the phone was looked at last; None if it does not say."""

    @cached_property
    def phone(self) -> knobs.PhoneAccess:
        """What the phone lets us do; asked once."""
        return knobs.probe(self._transport, system=self._system, wired=self._wired)

    def hold(self) -> knobs.Report:
        """Set the knobs: what came of each."""
        self._report = {}  # from here on there may be something to put back
        self._report = knobs.hold(self.phone)
        return self._report

    def look(self) -> tuple[Reading, list[str]]:
        """Return what the phone says now, and notes on it. Raises `DeviceFailure` if it does not answer."""
        said = self.sources.read()
        return self._remember(reading(said)), self.sources.notes(said)

    def steadily(self, work: Callable[[], T], limits: ThermalLimits) -> tuple[T, Steadiness]:
        """Implement `Device.steadily`."""
        before, waited = wait_until_cool(self._look_and_hold, limits)
        result = work()
        after, notes = self.look()
        held = self._report or {}
        verdict = judge(before, after, held=_holds_clock(held), tolerated_status=limits.thermal_status)
        notes = [*verdict.facts.get("notes", ()), *notes]
        facts = {**verdict.facts, **waited, "knobs": held, **({"notes": notes} if notes else {})}
        return result, replace(verdict, facts=facts)

    def _look_and_hold(self) -> Reading:
        """Look, and set the knobs if that was not done since the phone booted: most of them do not survive it."""
        said = self.sources.read()
        if self._report is None or said.get(BOOT) != self._boot:
            self.hold()
            self._boot = said.get(BOOT)
        return self._remember(reading(said))

    def _remember(self, seen: Reading) -> Reading:
        self.reset_count = seen.reset_count
        return seen

    def put_back(self) -> knobs.Report:
        """Put back what whoever was here before us left changed: what came of each knob."""
        return knobs.restore(self.phone)

    def close(self) -> None:
        """Put everything back. If the phone is gone, its own note of what there was stays for the next who holds it."""
        if self._report is None:
            return
        self._report = None
        try:
            knobs.restore(self.phone)
        except Failure as failure:
            log.warning("%s: its settings are not put back yet: %s", self._transport.name, failure)


def _holds_clock(held: knobs.Report) -> bool:
    """Return whether root holds the GPU at one clock."""
    return any(knob.name in held and not knobs.complains(held[knob.name]) for knob in knobs.RANGES)
