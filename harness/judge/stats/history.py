"""A series over its commits: where it stepped, by how much, and how sure that is.

Steps are sought by least squares in stretches of every length (seeded binary segmentation: Kovács et al., Biometrika
110, 2023), which takes time near-linear in the points. Each then has to be certain between its neighbours, weakest
first, or is merged away. A run of one or two points that comes back is an outlier, found by Hampel's filter. The test
of one step is `harness.judge.stats.step`.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from harness.judge.stats import robust
from harness.judge.stats.session import Noise, as_numbers, is_time
from harness.judge.stats.step import (
    FEWEST_A_SIDE,
    UNKNOWN,
    Fit,
    Resemblance,
    autocorrelation,
    best_step,
    centre,
    effective_points,
    join,
    p_by_drawing,
    tick_of,
)

ALPHA = 0.001
"""Chance of any step in a series that has none, of one look. Looks at a series that grows by a commit repeat most of
what was seen; `benchmarks.history_steps` counts alarms over twelve of them (docs/evidence/findings.md)."""
FEWEST = 6
"""Fewest points of a series for a step without known noise."""
REACH = 2
"""An outlier comes back within this many points."""
OUTLIER = 4.0
"""Standard deviations from its neighbours' median that make a point an outlier."""
SHORTEST = 6
"""Points of the shortest stretches in which steps are sought."""
GROWTH = 2
"""Growth of the stretches' length from one to the next."""
MANY = 4
"""Number of proposed steps from which on a drift is tested as their cause."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LastingChange:
    """A change that stayed. Relative numbers are fractions: 0.05 is 5 % slower."""

    index: int
    """First point after it, counted in the series as given."""
    relative: float
    low: float
    high: float
    """Interval of `relative` at 99 %, its place taken as known."""
    before_ms: float
    after_ms: float
    """Both sides of it, where a trend would have them at its place."""
    p: float
    """p-value, for all places together."""
    trend: bool = False
    """Whether the series moves steadily besides."""


def segment(
    locations_ms: Sequence[float], relevant: float = 0.0, noise: Noise | None = None, others: Resemblance = UNKNOWN
) -> list[LastingChange]:
    """Find the steps of a series: one location per commit, in commit order; a missing point is NaN.

    Steps smaller than `relevant` (a fraction) are merged. `noise` is what is known of sessions beforehand; without it
    fewer than `FEWEST` points tell nothing. `others` is what other series of the rig tell of how much neighbours
    resemble each other. Never raises for data: what is not a positive number is left out.
    """
    valid, logs = _valid(locations_ms)
    if len(valid) < FEWEST:
        if noise is None or not noise.is_known or len(valid) < 2:
            return []
        return list(_jumps(logs, valid, math.log1p(relevant), noise))
    away, near, proposed = _set_outliers_aside(logs)
    search = _Search(logs[near], away, math.log1p(relevant), others)
    return [_step(fit, p, valid[near[cut]]) for cut, fit, p in search.certain(proposed)]


def resemblance(locations_ms: Sequence[float]) -> Resemblance:
    """Return how much neighbouring points of a series resemble each other, any steps and a trend apart."""
    _, logs = _valid(locations_ms)
    if len(logs) < FEWEST:
        return UNKNOWN
    _, near, proposed = _set_outliers_aside(logs)
    return _own_resemblance(logs[near], [0, *proposed, len(near)])


def _valid(locations_ms: Sequence[float]) -> tuple[list[int], Array]:
    """Return the places of what is a time, and its logarithms."""
    values = as_numbers(locations_ms)
    valid = [index for index, value in enumerate(values) if is_time(value)]
    return valid, np.log(np.asarray([values[index] for index in valid], float))


def _set_outliers_aside(logs: Array) -> tuple[Array, NDArray[np.intp], list[int]]:
    """Return how far off each outlier is, the places of what is none, and among those the places where steps may be."""
    from_differences = robust.MAD_TO_SD * float(np.median(np.abs(np.diff(logs)))) / math.sqrt(2)  # a step moves one
    spread = max(from_differences, tick_of(logs) / 2)
    away = _from_neighbours(logs)
    far = np.abs(away) > OUTLIER * spread
    near = np.flatnonzero(~far)
    cuts = _propose_cuts(logs[near], spread)
    if len(cuts) >= MANY:  # level stretches take many to make up a drift
        cuts = min(cuts, _propose_cuts(_less_drift(logs[near]), spread), key=len)
    return away[far], near, cuts


def _less_drift(logs: Array) -> Array:
    """Return what is left of a series beside the line that goes best with one step."""
    fit, places = best_step(logs), np.arange(float(len(logs)))
    rest, away = centre(logs - fit.shift * (places >= fit.cut)), centre(places)
    return np.asarray(logs - away * (away @ rest) / (away @ away))


def _own_resemblance(logs: Array, cuts: Sequence[int]) -> Resemblance:
    """Estimate resemblance from what cuts and a line leave of a series."""
    left, times = (
        np.concatenate([centre(values[a:b]) for a, b in pairwise(cuts)])
        for values in (logs, np.arange(float(len(logs))))
    )
    left = left - times * (times @ left) / max(float(times @ times), 1.0)
    fitted = 2 * len(cuts) - 2
    return Resemblance(float(autocorrelation(left[None], fitted)[0, 0]), effective_points(len(logs), fitted))


def _jumps(logs: Array, valid: Sequence[int], relevant: float, noise: Noise) -> Iterator[LastingChange]:
    """Jumps of a series too short to show its own noise: neighbours further apart than its known noise."""
    from scipy.special import stdtr

    error = noise.sd * math.sqrt(2)
    for place, jump in enumerate(np.diff(logs).tolist(), 1):
        p = min(1.0, 2 * float(stdtr(noise.df, -abs(jump) / error)) * (len(logs) - 1))
        if p <= ALPHA and abs(jump) > relevant:
            fit = Fit(place, jump, error, noise.df, float(logs[place - 1]), p, trend=False)
            yield _step(fit, p, valid[place])


def _from_neighbours(logs: Array) -> Array:
    """Return the distance of points from the median of their neighbourhood, symmetric at both ends."""
    middles = logs.copy()
    for reach in range(1, REACH + 1):
        width = 2 * reach + 1
        if len(logs) >= width:
            middles[reach : len(logs) - reach] = np.median(sliding_window_view(logs, width), axis=1)
    return np.asarray(logs - middles)


def _propose_cuts(logs: Array, spread: float) -> list[int]:
    """Places where a step explains much of some stretch, the best first chosen, and only one of each stretch."""
    least = 2 * math.log(len(logs)) * max(spread, 1e-12) ** 2
    cuts: list[int] = []
    for _, begin, end, cut in sorted(_candidates(logs, least), reverse=True):
        if bisect.bisect_right(cuts, begin) == bisect.bisect_left(cuts, end):
            bisect.insort(cuts, cut)
    return cuts


def _candidates(logs: Array, least: float) -> Iterator[tuple[float, int, int, int]]:
    """Yield the best cut of each stretch that explains enough of the squares: explained, begin, end and cut."""
    lengths, length = [len(logs)], SHORTEST
    while length < len(logs):
        lengths.append(length)
        length *= GROWTH
    for count in lengths:
        begins = np.unique(np.append(np.arange(0, len(logs) - count, max(1, count // 3)), len(logs) - count))
        rows = logs[begins[:, None] + np.arange(count)]
        left = np.arange(1, count)
        sums = np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1)[:, :-1]
        explained = (sums**2 * (count / (left * (count - left))))[:, FEWEST_A_SIDE - 1 : count - FEWEST_A_SIDE]
        best = explained.argmax(axis=1)
        most = explained[np.arange(len(begins)), best]
        for place in np.flatnonzero(most > least).tolist():
            begin = int(begins[place])
            yield float(most[place]), begin, begin + count, begin + FEWEST_A_SIDE + int(best[place])


class _Search:
    """What is left of proposed cuts when every one has to be certain between its neighbours."""

    def __init__(self, logs: Array, away: Array, relevant: float, others: Resemblance) -> None:
        self._logs, self._away, self._relevant, self._others = logs, away, relevant, others
        self._known = others

    def certain(self, proposed: Sequence[int]) -> list[tuple[int, Fit, float]]:
        """Cuts with their fit and p-value; what is left of them is also looked at as parts of one series."""
        cuts = [0, *proposed, len(self._logs)]
        self._known = self._resemblance(cuts)
        looked = self._merge(cuts)
        if looked:
            self._known = self._resemblance(cuts)
            looked = self._merge(cuts)
        return [(cut, *look) for cut, look in zip(cuts[1:-1], looked, strict=True)]

    def _merge(self, cuts: list[int]) -> list[tuple[Fit, float]]:
        """Merge across the least certain cut, and look at its neighbours again, until every cut is certain."""
        looked = [self._look(cuts, number) for number in range(1, len(cuts) - 1)]
        while looked:
            weakest = max(range(len(looked)), key=lambda number: self._weakness(*looked[number]))
            small, p = self._weakness(*looked[weakest])
            if not small and p <= ALPHA:
                break
            del looked[weakest], cuts[weakest + 1]
            for number in (weakest, weakest + 1):
                if 1 <= number <= len(looked):
                    looked[number - 1] = self._look(cuts, number)
        return looked

    def _resemblance(self, cuts: Sequence[int]) -> Resemblance:
        """Return what these cuts leave, and what others tell."""
        own = _own_resemblance(self._logs, cuts)
        alike = join(np.array([[own.alike]]), own.points, self._others)
        return Resemblance(float(alike[0, 0]), own.points + self._others.points)

    def _weakness(self, fit: Fit, p: float) -> tuple[bool, float]:
        return abs(fit.shift) < self._relevant, p

    def _look(self, cuts: list[int], number: int) -> tuple[Fit, float]:
        """Return the best step between the neighbours of a cut, which is moved there."""
        begin, end = cuts[number - 1], cuts[number + 1]
        between = self._logs[begin:end]
        fit = best_step(between, self._known)
        cuts[number] = begin + fit.cut
        share = (end - begin) / len(self._logs)
        p = fit.p if fit.p > ALPHA * share else max(fit.p, p_by_drawing(between, fit, self._others))
        return fit, min(1.0, max(p / share, *self._outliers_in_a_row(begin, end, fit)))

    def _outliers_in_a_row(self, begin: int, end: int, fit: Fit) -> tuple[float, float]:
        """Return the chance that what lies before or behind a step, up to an end of the series, is outliers in a row.

        Where one session in ten is 5 % slower, the last two are now and then. Outliers are set aside before a step is
        sought, so what is left of them knows nothing of how many there are.
        """
        count = len(self._logs) + len(self._away)
        sides = ((begin == 0, fit.cut, -fit.shift), (end == len(self._logs), end - begin - fit.cut, fit.shift))

        def chance(at_an_end: bool, points: int, shift: float) -> float:
            alike = int((self._away * math.copysign(1, shift) > abs(shift) / 2).sum())
            return float(((alike + 1) / (count + 1)) ** points) if at_an_end and alike else 0.0

        return chance(*sides[0]), chance(*sides[1])


def _step(fit: Fit, p: float, index: int) -> LastingChange:
    half, before_ms = fit.half_width(0.01), math.exp(fit.before)
    return LastingChange(
        index,
        relative=math.expm1(fit.shift),
        low=math.expm1(fit.shift - half),
        high=math.expm1(fit.shift + half),
        before_ms=before_ms,
        after_ms=before_ms * math.exp(fit.shift),
        p=p,
        trend=fit.trend,
    )
