"""The part of a record that a sustained run leaves: what it did over time, and the figures that people quote.

Samples are kept in bins of about a second, however many there are, so that ten minutes are a few tens of kB.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

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
        first = [part for part in bins if part.at_s < window_s] or bins[:1]
        last = [part for part in bins if part.at_s >= self.lasted_s - window_s] or bins[-1:]
        first_ms, last_ms = _median_of(first), _median_of(last)
        busy_ms = sum(part.wall_ms * part.inferences for part in bins)
        percents = [part.battery_percent for part in bins if part.battery_percent is not None]
        return Figures(
            window_s=round(window_s, 1),
            first_ms=first_ms,
            last_ms=last_ms,
            ratio=round(last_ms / first_ms, 4) if first_ms else 1.0,
            inferences=sum(part.inferences for part in bins),
            busy_share=round(min(1.0, busy_ms / 1e3 / self.lasted_s), 3) if self.lasted_s else 0.0,
            throttled_share=self._throttled_share,
            hottest_c=max((part.gpu_c for part in bins if part.gpu_c is not None), default=None),
            battery_used_percent=percents[0] - percents[-1] if percents else None,
            energy=energy_of(bins),
        )

    @property
    def _throttled_share(self) -> float | None:
        bins = self.bins
        ends = [*(part.at_s for part in bins[1:]), self.lasted_s]
        lasted = [(end_s - part.at_s, part.power_level) for part, end_s in zip(bins, ends, strict=True)]
        if all(level is None for _, level in lasted):
            return None
        return round(sum(seconds for seconds, level in lasted if level) / self.lasted_s, 3) if self.lasted_s else 0.0


def energy_of(bins: Sequence[Bin]) -> Energy | None:
    """Charge times voltage, from the end of the first bin on, of a phone that lives on its battery; None if unknown.

    Charge comes in steps: the smallest that was seen is the resolution. A charge that rises is no use of the phone's.
    """
    looks = [(part.charge_uah, part.voltage_mv) for part in bins]
    readings = [(charge, voltage) for charge, voltage in looks if charge is not None and voltage is not None]
    inferences = sum(part.inferences for part in bins[1:])
    if len(readings) < len(bins) or not inferences:
        return None
    steps = [before - after for (before, _), (after, _) in itertools.pairwise(readings) if before != after]
    if len(steps) < FEWEST_STEPS or min(steps) < 0:
        return None
    mean_mv = statistics.fmean(voltage for _, voltage in readings)
    used_mj, step_mj = (uah * mean_mv * MJ_FOR_UAH_MV for uah in (sum(steps), min(steps)))
    return Energy(round_digits(used_mj / inferences), round_digits(step_mj / inferences))


def _median_of(bins: Sequence[Bin]) -> float:
    """Return the median sample of several bins, each sample taken for its bin's median."""
    ordered = sorted((part.wall_ms, part.inferences) for part in bins)
    half = sum(count for _, count in ordered) / 2
    reached = itertools.accumulate(count for _, count in ordered)
    return next(ms for (ms, _), so_far in zip(ordered, reached, strict=True) if so_far >= half)


def round_digits(ms: float) -> float:
    """Five significant digits: far more than a latency has."""
    return float(f"{ms:.5g}")
