"""Everything that keeps one phone steady, from its first measurement until it is given back.

That is its knobs, and waiting for a limited time until it is within its thermal limits and has nothing else to do.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from device_runner.device import Steadiness, T, ThermalLimits
from device_runner.failures import Failure, FlatBattery
from device_runner.stability import knobs
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
        """Set the knobs, and return the result of each."""
        self._report = {}  # from here on there may be something to put back
        self._report = knobs.hold(self.phone)
        return self._report

    def look(self) -> tuple[Reading, list[str]]:
        """Return what the phone says now, and notes on it. Raises `DeviceFailure` if it does not answer."""
        texts = self.sources.read()
        return self._remember(reading(texts)), self.sources.notes(texts)

    def glance(self) -> Reading:
        """Return what the phone says now, and remember nothing: a session compares its resets with `look`'s."""
        return reading(self.sources.read())

    def steadily(self, work: Callable[[], T], limits: ThermalLimits) -> tuple[T, Steadiness]:
        """Implement `Device.steadily`."""
        before, waited = wait_until_cool(self._look_and_hold, limits)
        result = work()
        after, notes = self.look()
        report = self._report or {}
        fixed_clock = any(k.name in report and not knobs.complains(report[k.name]) for k in knobs.RANGES)
        verdict = judge(before, after, fixed_clock=fixed_clock, tolerated_status=limits.thermal_status)
        notes = [*verdict.facts.get("notes", ()), *notes]
        facts = {**verdict.facts, **waited, "knobs": report, **({"notes": notes} if notes else {})}
        return result, replace(verdict, facts=facts)

    def _look_and_hold(self) -> Reading:
        """Look, and set the knobs if that was not done since the phone booted: most of them do not survive it."""
        texts = self.sources.read()
        if self._report is None or texts.get(BOOT) != self._boot:
            self.hold()
            self._boot = texts.get(BOOT)
        return self._remember(reading(texts))

    def _remember(self, now: Reading) -> Reading:
        self.reset_count = now.reset_count
        return now

    def put_back(self) -> knobs.Report:
        """Put back what an earlier run left changed. Return the result for each knob."""
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


POLL_S = 2.0
IDLE_POLL_S, IDLE_WAIT_S = 0.5, 5.0
"""The driver counts in windows of a second; what keeps a GPU busy for longer than five does not stop soon."""


def too_hot(reading: Reading, limits: ThermalLimits) -> str:
    """Return what is over its limit, in one line; empty if nothing is, or nothing can be read."""
    over = [
        f"{name} {value:g} > {limit:g}"
        for name, value, limit in (
            ("GPU °C", reading.gpu_c, limits.gpu_c),
            ("battery °C", reading.battery_c, limits.battery_c),
            ("thermal status", reading.thermal_status, limits.thermal_status),
        )
        if value is not None and value > limit
    ]
    return ", ".join(over)


def too_busy(reading: Reading, limits: ThermalLimits) -> str:
    """Return what the GPU still does, in one line; empty if it is idle, or if it does not tell."""
    busy = reading.gpu_busy_percent
    return f"GPU {busy} % busy > {limits.gpu_busy_percent}" if (busy or 0) > limits.gpu_busy_percent else ""


def require_charge(reading: Reading, limits: ThermalLimits) -> None:
    """Raise FlatBattery if the battery is below its floor: that takes longer to mend than anybody would wait here."""
    charge = reading.battery_percent
    if charge is not None and charge < limits.battery_percent:
        message = f"nothing was timed: the battery is at {charge} %, below its floor of {limits.battery_percent} %"
        hint = "charge it and run again with --resume, or lower `battery_percent` under [steady] in the suite"
        raise FlatBattery(message, hint=hint)


def wait_until_cool(
    look: Callable[[], Reading],
    limits: ThermalLimits,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Reading, dict[str, object]]:
    """Read the phone until it is cool and idle, or the time for that is over.

    Returns the last reading, and facts about the wait. Raises FlatBattery.
    """
    reading = look()
    require_charge(reading, limits)
    began = clock()

    def waited(why: Callable[[Reading, ThermalLimits], str], wait_s: float, poll_s: float) -> str:
        nonlocal reading
        since = clock()
        while why(reading, limits) and (left_s := wait_s - (clock() - since)) > 0:
            sleep(min(poll_s, left_s))
            reading = look()
        return why(reading, limits)

    hot = waited(too_hot, limits.wait_s, POLL_S)
    busy = waited(too_busy, min(limits.wait_s, IDLE_WAIT_S), IDLE_POLL_S)
    facts: dict[str, object] = {"waited_s": round(clock() - began, 1)}
    started = {"hot_start": hot, "busy_start": busy}
    return reading, {**facts, **{name: why for name, why in started.items() if why}}
