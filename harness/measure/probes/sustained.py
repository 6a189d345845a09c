"""A case that is kept running: what it did over time, and the figures that people quote.

A sustained run asks what a cool phone's pace becomes, so heat that slows it is a finding here, and no reason to measure
again. Samples are kept in bins of about a second, however many there are, so that ten minutes are a few tens of kB.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ConfigDict

from harness.measure.probes.latency import warm_up

if TYPE_CHECKING:
    from device_runner.device import Program, Pulse
    from harness.base.plan import Budget

CHUNK_S = 1.0
"""Seconds of computing between two readings of the device and reports of progress."""
MOST_BINS, FEWEST_BINS = 600, 20
"""Bins of a complete run: a longer run has longer bins."""
FULL_BIN = 0.9
"""A bin that has lasted for so much of its time is not filled up with another chunk."""
FEWEST_STEPS = 2
"""Of the battery's counter: one alone does not tell how large they are."""
MJ_FOR_UAH_MV = 3.6e-3
"""mJ in one uAh at one mV."""
FIGURE_S = 60.0
"""What "first" and "last" mean, of a run that lasts at least twice as long."""


class Bin(NamedTuple):
    """About a second of a sustained run: its samples in three numbers, and what the phone said at its end.

    None is what the phone did not say. Times in s since the first bin began, latencies in ms.
    """

    at_s: float
    """Start of the bin, in seconds."""
    wall_ms: float
    """Median of its samples."""
    p90_ms: float
    inferences: int
    clock_mhz: float | None = None
    """Mean clock of the GPU while it was busy; where the driver does not count that, its clock at the end."""
    gpu_c: float | None = None
    power_level: int | None = None
    """The fastest that heat allows (`thermal_pwrlevel`): 0 is the fastest there is."""
    thermal_status: int | None = None
    """Android's."""
    battery_percent: int | None = None
    battery_c: float | None = None
    charge_uah: int | None = None
    """What is left in the battery, where nothing else feeds the phone."""
    voltage_mv: int | None = None


class Energy(NamedTuple):
    """What one inference took out of the battery, with all else that the phone did meanwhile."""

    each_mj: float
    resolution_mj: float
    """The smallest difference that the battery's counter can show, for one inference: the result is that uncertain."""


class Figures(NamedTuple):
    """What people quote of a sustained run."""

    window_s: float
    """How long "first" and "last" are: a minute, or half of a run that is shorter than two."""
    first_ms: float
    """Median latency of the first minute."""
    last_ms: float
    """Median latency of the last minute."""
    ratio: float
    """Last to first: 1.25 is a quarter slower."""
    inferences: int
    busy_share: float
    """How much of the time was inferences; the rest is the reading of the phone and the way to it."""
    throttled_share: float | None
    """How much of the time heat allowed less than the fastest power level; None if the phone does not say."""
    hottest_c: float | None
    battery_used_percent: int | None
    energy: Energy | None
    """None if the phone was fed, does not count its charge, or used too little for its counter to move twice."""


class Sustained(BaseModel):
    """What a sustained run measured, column by column."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    asked_s: float
    lasted_s: float = 0.0
    """Duration in s; shorter than requested if it was stopped, or if the case or the device failed."""
    stopped: bool = False
    """Whether a person stopped it."""
    throttled_after_s: float | None = None
    """Time in s of the first slow-down by heat; None if there was none, or if the phone does not show it."""
    throttled_why: str = ""
    """What it said then."""
    shows_throttling: bool = False
    """Whether the phone says anything of that."""
    columns: dict[str, list[int | float | None]] = {}
    """The fields of `Bin`, a number for each bin; what a phone never says has no column."""

    @property
    def bins(self) -> list[Bin]:
        """The bins, in the order of time."""
        count = len(self.columns.get("at_s", ()))
        whole = [self.columns.get(name) or [None] * count for name in Bin._fields]
        return [Bin(*row) for row in zip(*whole, strict=True)]

    @property
    def figures(self) -> Figures | None:
        """What people quote of it; None if nothing was measured."""
        bins = self.bins
        if not bins:
            return None
        window_s = min(FIGURE_S, self.lasted_s / 2)
        first = [one for one in bins if one.at_s < window_s] or bins[:1]
        last = [one for one in bins if one.at_s >= self.lasted_s - window_s] or bins[-1:]
        first_ms, last_ms = _median_of(first), _median_of(last)
        busy_ms = sum(one.wall_ms * one.inferences for one in bins)
        percents = [one.battery_percent for one in bins if one.battery_percent is not None]
        return Figures(
            window_s=round(window_s, 1),
            first_ms=first_ms,
            last_ms=last_ms,
            ratio=round(last_ms / first_ms, 4) if first_ms else 1.0,
            inferences=sum(one.inferences for one in bins),
            busy_share=round(min(1.0, busy_ms / 1e3 / self.lasted_s), 3) if self.lasted_s else 0.0,
            throttled_share=self._throttled_share,
            hottest_c=max((one.gpu_c for one in bins if one.gpu_c is not None), default=None),
            battery_used_percent=percents[0] - percents[-1] if percents else None,
            energy=energy_of(bins),
        )

    @property
    def _throttled_share(self) -> float | None:
        bins = self.bins
        ends = [*(one.at_s for one in bins[1:]), self.lasted_s]
        lasted = [(end_s - one.at_s, one.power_level) for one, end_s in zip(bins, ends, strict=True)]
        if all(level is None for _, level in lasted):
            return None
        return round(sum(seconds for seconds, level in lasted if level) / self.lasted_s, 3) if self.lasted_s else 0.0


def energy_of(bins: Sequence[Bin]) -> Energy | None:
    """Charge times voltage, from the end of the first bin on, of a phone that lives on its battery; None if unknown.

    Charge comes in steps: the smallest that was seen is the resolution. A charge that rises is no use of the phone's.
    """
    looks = [(one.charge_uah, one.voltage_mv) for one in bins]
    known = [(charge, voltage) for charge, voltage in looks if charge is not None and voltage is not None]
    inferences = sum(one.inferences for one in bins[1:])
    if len(known) < len(bins) or not inferences:
        return None
    steps = [before - after for (before, _), (after, _) in itertools.pairwise(known) if before != after]
    if len(steps) < FEWEST_STEPS or min(steps) < 0:
        return None
    mean_mv = statistics.fmean(voltage for _, voltage in known)
    used_mj, step_mj = (uah * mean_mv * MJ_FOR_UAH_MV for uah in (sum(steps), min(steps)))
    return Energy(_digits(used_mj / inferences), _digits(step_mj / inferences))


class SustainedRun:
    """A sustained run as it goes: whatever ends it, what was measured until then is there."""

    def __init__(self, asked_s: float) -> None:
        self._asked_s = asked_s
        self._bins: list[Bin] = []
        self._lasted_s = 0.0
        self._throttled: tuple[float, str] | None = None
        self._shows = False
        self.stopped = False
        """Whether a person stopped it."""

    @property
    def begun(self) -> bool:
        """Whether there is anything to keep."""
        return bool(self._bins)

    def add(self, one: Bin, until_s: float) -> None:
        """Add a bin that ended just now."""
        self._bins.append(one)
        self._lasted_s = until_s

    def looked(self, at_s: float, pulse: Pulse) -> None:
        """Note what the phone said of being slowed down by heat."""
        self._shows = self._shows or pulse.shows_heat
        if pulse.slowed and not self._throttled:
            self._throttled = at_s, pulse.slowed

    @property
    def so_far(self) -> Sustained:
        """What a record keeps."""
        columns = {name: list(column) for name, column in zip(Bin._fields, zip(*self._bins, strict=True), strict=False)}
        at_s, why = self._throttled or (None, "")
        return Sustained(
            asked_s=self._asked_s,
            lasted_s=round(self._lasted_s, 2),
            stopped=self.stopped,
            throttled_after_s=None if at_s is None else round(at_s, 1),
            throttled_why=why,
            shows_throttling=self._shows,
            columns={name: column for name, column in columns.items() if any(value is not None for value in column)},
        )


def sustain(
    program: Program,
    budget: Budget,
    look: Callable[[], Pulse],
    into: SustainedRun,
    *,
    tell: Callable[[str], object] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Keep a program that is known to be right running for `budget.sustain_s`, and read the phone after each bin.

    Warms up first. `tell` hears about once a second how it goes. Raises what `program` and `look` raise; `into` then
    has what was measured before.
    """
    asked_s = budget.sustain_s
    every_s = max(asked_s / MOST_BINS, min(CHUNK_S, asked_s / FEWEST_BINS))
    typical_ms = warm_up(program, budget, clock)[-1]
    pulse = look()
    into.looked(0.0, pulse)
    began = clock()
    while (at_s := clock() - began) < asked_s:
        times: list[float] = []
        while (left_s := every_s - (clock() - began - at_s)) > (1 - FULL_BIN) * every_s or not times:
            repeat = max(1, int(1e3 * min(CHUNK_S, left_s) / max(typical_ms, 1e-3)))
            times += program.wall_ms(repeat, timeout_s=budget.timeout_s)
            typical_ms = statistics.median(times[-repeat:])
            tell(_progress(clock() - began, asked_s, typical_ms, pulse))
        pulse = look()
        until_s = clock() - began
        into.add(_bin(at_s, times, pulse), until_s)
        into.looked(until_s, pulse)


def _bin(at_s: float, times: Sequence[float], pulse: Pulse) -> Bin:
    ordered = sorted(times)
    return Bin(
        at_s=round(at_s, 2),
        wall_ms=_digits(statistics.median(ordered)),
        p90_ms=_digits(ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]),
        inferences=len(ordered),
        clock_mhz=pulse.clock_mhz,
        gpu_c=pulse.gpu_c,
        power_level=pulse.power_level,
        thermal_status=pulse.thermal_status,
        battery_percent=pulse.battery_percent,
        battery_c=pulse.battery_c,
        charge_uah=pulse.charge_uah,
        voltage_mv=pulse.voltage_mv,
    )


def _median_of(bins: Sequence[Bin]) -> float:
    """Return the median sample of several bins, each sample taken for its bin's median."""
    ordered = sorted((one.wall_ms, one.inferences) for one in bins)
    half = sum(count for _, count in ordered) / 2
    reached = itertools.accumulate(count for _, count in ordered)
    return next(ms for (ms, _), so_far in zip(ordered, reached, strict=True) if so_far >= half)


def _digits(ms: float) -> float:
    """Five significant digits: far more than a latency has."""
    return float(f"{ms:.5g}")


def _progress(at_s: float, asked_s: float, ms: float, pulse: Pulse) -> str:
    heat = [f"{pulse.gpu_c:.0f} °C"] if pulse.gpu_c is not None else []
    level = [f"power level {pulse.power_level}"] if pulse.power_level else []
    return ", ".join([f"{min(at_s, asked_s):.0f} of {asked_s:g} s", f"{ms:.4g} ms", *heat, *level])
