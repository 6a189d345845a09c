"""One session as one number, if its samples are sound.

Inferences of a session share its bias, so the session is the unit of every test here. What is wrong with samples is
said in words; nothing is repaired or dropped.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, compress, islice
from sys import intern
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from harness.judge.stats import robust
from harness.judge.stats.robust import (
    Rows,
    drifts,
    effective_sizes,
    locations,
    lower_quartiles,
    modes,
    rows_of_one_length,
    spreads,
    ticks,
    trend_p,
    warm_ups,
)
from harness.judge.stats.shares import signed_share

SHORTEST_MS, LONGEST_MS = 1e-9, 1e12
DAY_SD, DAY_DF = 0.02, 4.0
"""Default noise between the days of a device: 2 %, with few degrees of freedom."""
Samples = Sequence[float]
"""Times of one session in ms, in the order taken."""


class ReferenceSamples(NamedTuple):
    """Times of a reference kernel and of its slowed twin, from one session or several."""

    kernel: str
    """Name of the kernel; empty if none was measured. Only equal kernels can be compared."""
    reference_ms: Sequence[float] = ()
    slowed_ms: Sequence[float] = ()

    @classmethod
    def of(cls, kernel: str, reference_ms: Sequence[float], slowed_ms: Sequence[float]) -> ReferenceSamples:
        """Return them as what takes little memory."""
        return cls(intern(kernel), as_numbers(reference_ms), as_numbers(slowed_ms))


@dataclass(frozen=True)
class SampleLimits:
    """Limits for the samples of a session. Shares and relative changes are fractions."""

    fewest: int = 5
    independent: float = 0.12
    """Smallest effective sample size, as a share of their number; matters from about 25 samples on."""
    warm_up: float = 0.2
    """Largest share of leading samples that may still differ from the settled second half."""
    drift: float = 0.05
    """Largest change from the first sample to the last along a trend that is not chance."""
    drift_p: float = 0.001
    """Kendall's test has to be this sure of a trend."""
    modes_apart: float = 0.08
    """Two modes closer than this leave the location good enough."""
    modes_explain: float = 0.92
    """Share of the variance that two modes must explain; normal noise, split where it splits best, reaches 0.64."""
    fewest_in_mode: float = 0.2
    steady: bool = False
    """Whether samples that are all the same will do: where the clock is known to run, the kernel is steady."""


LIMITS = SampleLimits()


@dataclass(frozen=True)
class Quality:
    """Whether samples are usable, and why not."""

    ok: bool
    reasons: tuple[str, ...] = ()


def check(samples_ms: Sequence[float], limits: SampleLimits = LIMITS) -> Quality:
    """Check samples in the order taken. Never raises for bad values; text or None counts as not a number."""
    (quality,) = check_each([samples_ms], limits)
    return quality


def check_each(sessions: Sequence[Sequence[float]], limits: SampleLimits = LIMITS) -> list[Quality]:
    """Check many sessions at once, in a fraction of the time."""
    numbers = [as_numbers(samples_ms) for samples_ms in sessions]
    qualities: dict[int, Quality] = {}
    for valid in _valid_rows(numbers, limits):
        qualities.update(zip(valid.places, (Quality(not why, why) for why in valid.reasons), strict=True))
    return [qualities.get(place) or Quality(False, (invalid(values, limits),)) for place, values in enumerate(numbers)]


def as_numbers(values: Sequence[Any]) -> array[float]:
    """Return the values as floats, in a quarter of a list's memory; what is not a number becomes NaN."""
    if isinstance(values, array):
        return values
    try:
        return array("d", values)
    except TypeError:
        return array("d", [float(v) if isinstance(v, (int, float, np.number)) else math.nan for v in values])


def is_time(value_ms: float) -> bool:
    """Return whether a number can be a latency at all."""
    return SHORTEST_MS <= value_ms <= LONGEST_MS


def invalid(values: Sequence[float], limits: SampleLimits) -> str:
    """Return why these cannot be times at all; empty if they can."""
    if len(values) < limits.fewest:
        return f"{len(values)} sample{'s' * (len(values) != 1)}; at least {limits.fewest} are needed"
    odd = [value for value in values if not SHORTEST_MS <= value <= LONGEST_MS]
    if odd:
        return f"{len(odd)} of {len(values)} samples are no times (the first: {odd[0]:g})"
    if not limits.steady and min(values) == max(values):
        return f"all {len(values)} samples are {values[0]:g} ms: the clock is too coarse or stands still"
    return ""


class _ValidRows(NamedTuple):
    """Sessions of one length that hold nothing but times."""

    places: list[int]
    rows: Rows
    sizes: Rows
    """Effective sample size of each."""
    reasons: list[tuple[str, ...]]
    """Why each is not usable; empty if it is."""


def _valid_rows(sessions: Sequence[array[float]], limits: SampleLimits) -> Iterator[_ValidRows]:
    """Yield the sessions that `invalid` does not reject, each with its place."""
    for all_places, all_rows in rows_of_one_length(sessions):
        valid = _valid(all_rows, limits)
        places, rows = list(compress(all_places, valid)), all_rows[valid]
        if places:
            sizes = effective_sizes(rows)
            yield _ValidRows(places, rows, sizes, _all_reasons(rows, sizes, limits))


def _valid(rows: Rows, limits: SampleLimits) -> NDArray[np.bool_]:
    """Return the rows that `invalid` does not reject."""
    times = ((rows >= SHORTEST_MS) & (rows <= LONGEST_MS)).all(axis=1)
    differ = rows.min(axis=1) != rows.max(axis=1)
    valid: NDArray[np.bool_] = times & (differ | limits.steady) & (rows.shape[1] >= limits.fewest)
    return valid


def _all_reasons(rows: Rows, sizes: Rows, limits: SampleLimits) -> list[tuple[str, ...]]:
    """Return why each of these rows cannot carry a verdict."""
    reasons: dict[int, tuple[str, ...]] = {}
    for place, reason in _complaints(rows, sizes, limits):
        reasons[place] = (*reasons.get(place, ()), reason)
    return [reasons.get(place, ()) for place in range(len(rows))]


def _complaints(rows: Rows, sizes: Rows, limits: SampleLimits) -> Iterator[tuple[int, str]]:
    """Yield the places of rows that break a limit, and how; what a limit does not bound is not looked at."""
    count = rows.shape[1]
    for place in np.flatnonzero(sizes < limits.independent * count).tolist():
        yield (
            place,
            f"the {count} samples depend on each other: they are worth only {sizes[place]:.1f} independent ones",
        )
    if limits.warm_up < 1:
        slow = warm_ups(rows)
        for place in np.flatnonzero(slow > limits.warm_up * count).tolist():
            yield place, f"the first {slow[place]} of {count} samples are a warm-up"
    if math.isfinite(limits.drift):
        changes = drifts(rows)
        for place in np.flatnonzero(np.abs(changes) >= limits.drift).tolist():
            if trend_p(rows[place]) <= limits.drift_p:
                yield place, f"the samples drift by {signed_share(changes[place])} from first to last"
    if math.isfinite(limits.modes_apart):
        explained, distances = modes(np.log(rows), limits.fewest_in_mode)
        two_groups = (explained >= limits.modes_explain) & (distances >= math.log1p(limits.modes_apart))
        for place in np.flatnonzero(two_groups).tolist():
            yield place, f"the samples fall into two groups {math.expm1(distances[place]):.1%} apart"


class Location(str, Enum):
    """Location of a session's samples. If some inferences of each are late, the lower quartile is steadier."""

    MIDDLE = "middle"
    """Hodges and Lehmann's location, unless the other is known to be steadier."""
    LOW = "lower quartile"


class SessionSummary(Struct, frozen=True, gc=False):
    """Location and error of a session. Logarithms turn relative changes into differences."""

    log_ms: float
    """Natural logarithm of the location in ms."""
    error: float
    """Standard error of `log_ms` from the noise within the session alone; the session's bias comes on top."""
    tick: float = 0.0
    """The smallest difference between two samples that differ: of a coarse clock its tick, else next to nothing."""


@dataclass(frozen=True)
class Noise:
    """How far sessions of one unchanged artifact lie apart, learnt beforehand (see harness/judge/stats/noise.py)."""

    sd: float
    """Standard deviation of the sessions' log locations: 0.01 is about 1 %."""
    df: float
    """Degrees of freedom that stand behind `sd`: sessions less one, for one series."""
    day_sd: float = DAY_SD
    """Standard deviation of what a day adds to all of its sessions; the default is an assumption, worth a few days."""
    day_df: float = DAY_DF
    location: Location = Location.MIDDLE
    """The location that this noise belongs to, by which base and head are both judged."""

    @property
    def is_known(self) -> bool:
        """Whether the noise is known."""
        return math.isfinite(self.sd) and self.sd > 0 and math.isfinite(self.df) and self.df > 0


def location_ms(samples_ms: Samples) -> float:
    """Return the latency of a session: Hodges and Lehmann's location of the logarithms.

    NaN without samples, or if one is not a time.
    """
    values = as_numbers(samples_ms)
    if not values or not all(map(is_time, values)):
        return math.nan
    unit = values[0]  # so that equal samples give just themselves
    return unit * math.exp(robust.location([math.log(value / unit) for value in values]))


def locations_ms(sessions: Sequence[Samples]) -> list[float]:
    """`location_ms` of each of many sessions of numbers, several times as fast as one by one."""
    results = [math.nan] * len(sessions)
    for places, rows in rows_of_one_length([*map(as_numbers, sessions)]):
        times = ((rows >= SHORTEST_MS) & (rows <= LONGEST_MS)).all(axis=1)
        rows[~times] = np.nan
        located = rows[:, 0] * np.exp(locations(np.log(rows / rows[:, :1])))
        for place, ms in zip(places, located.tolist(), strict=True):
            results[place] = ms
    return results


class Summary(NamedTuple):
    """The sessions of one side."""

    good: list[SessionSummary]
    """The usable sessions."""
    refused: tuple[str, ...]
    """Why the others are not usable ("session 2: ...")."""


def summarise(
    sessions: Sequence[Samples], limits: SampleLimits = LIMITS, location: Location = Location.MIDDLE
) -> Summary:
    """Summarise the sessions of one side."""
    (summary,) = summarise_each([sessions], limits, location)
    return summary


def summarise_each(
    sides: Sequence[Sequence[Samples]], limits: SampleLimits = LIMITS, location: Location = Location.MIDDLE
) -> list[Summary]:
    """Summarise many sides at once, in a fraction of the time."""
    numbers = [*map(as_numbers, chain.from_iterable(sides))]
    results: list[SessionSummary | str | array[float]] = [*numbers]
    for valid in _valid_rows(numbers, limits):
        for place, why, summary in zip(valid.places, valid.reasons, _summaries(valid, location), strict=True):
            results[place] = "; ".join(why) or summary
    each = (invalid(result, limits) if isinstance(result, array) else result for result in results)
    return [_summary(list(islice(each, len(side)))) for side in sides]


def _summary(results: Sequence[SessionSummary | str]) -> Summary:
    """Return the summary of sessions, of each its own or why it has none."""
    good = [session for session in results if isinstance(session, SessionSummary)]
    if len(good) == len(results):
        return Summary(good, ())
    refused = (f"session {number}: {why}" for number, why in enumerate(results, 1) if isinstance(why, str))
    return Summary(good, tuple(refused))


def _summaries(valid: _ValidRows, location: Location) -> Iterator[SessionSummary]:
    """Yield the summary of each row."""
    located, loss = _LOCATIONS[location]
    logs = np.log(valid.rows)
    steps = ticks(logs)
    errors = np.hypot(loss * spreads(logs) / np.sqrt(valid.sizes), steps / math.sqrt(12))
    return map(SessionSummary, located(logs).tolist(), errors.tolist(), steps.tolist())


_LOCATIONS = {
    Location.MIDDLE: (locations, robust.HODGES_LEHMANN_LOSS),
    Location.LOW: (lower_quartiles, robust.QUARTILE_LOSS),
}
"""Estimators of the location of logarithms in rows, with their standard error relative to a mean's."""
