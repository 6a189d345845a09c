"""One step in a stretch of a series: the place that least squares gives it, its size, and how sure it is.

A steady trend is part of the fit where one is evident, and only there, for it costs power elsewhere. Where neighbours
resemble each other (first-order autocorrelation), each point is taken less what the one before lets expect of it: what
is left resembles nothing, and least squares of it is the sharpest there is (Cochrane and Orcutt, J. Am. Stat. Assoc.
44, 1949). Noise is never less than what rounding to the ticks of a coarse clock makes.

The largest of many statistics, one for each place, is larger than one of them. Its tail is that of Siegmund (Sequential
Analysis, 1985; with James and James, Biometrika 74, 1987): for a bar b, twice P(Z > b) + b f(b) times the sum over
places of (1 - r) exp(-0.583 b sqrt(2 (1 - r))), r being the correlation of neighbouring statistics. That takes the
resemblance for known and the noise for normal; `p_by_drawing` takes neither.

A few dozen points say little of how much neighbours resemble each other, and what they do not say has to be paid for in
power. So the series of one rig, whose commits were measured one after the other on the same device, tell of each other
what they have in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

MOST_ALIKE = 0.95
"""Greatest autocorrelation that is reckoned with."""
FEWEST_SERIES = 3
"""Fewest series of a rig from which their common noise can be learned."""
MOST_POINTS = 1000.0
"""No series is known better than by so many points of others: they are not quite alike."""

Array: TypeAlias = NDArray[np.float64]
FEWEST_A_SIDE = 2
"""One point may yet come back."""
EVIDENT = 0.001
"""A trend beside a step is evident below this p-value."""
BETTER = 9.0
"""Number of variances by which a step must explain more than a line; otherwise the line is evident."""
OVERSHOOT = 0.583
"""Siegmund's constant for a walk that is looked at in steps."""
DRAWN, NEAR = 999, 60
"""Series without a step that a step is compared with, and points of them on either side of it."""
TAIL = 0.1
"""Share of the drawn series from which the chance of still larger steps is carried on."""


class Resemblance(NamedTuple):
    """What is known of a series."""

    alike: float = 0.0
    """Autocorrelation; below 0 where neighbours were rather unlike."""
    points: float = 0.0
    """How many points it is known by."""


UNKNOWN = Resemblance()


def autocorrelation(residuals: Array, fitted: int) -> Array:
    """Return what lies behind the residuals in each row, shape (rows, 1).

    What fitting so many numbers took from it is given back (Kendall, Biometrika 41, 1954).
    """
    count = residuals.shape[1]
    power = np.maximum((residuals**2).sum(axis=1), 1e-24)
    alike = (residuals[:, 1:] * residuals[:, :-1]).sum(axis=1) / power
    mended = (count * alike + fitted) / max(1.0, count - 3.0 * fitted)
    return np.asarray(np.clip(mended, -MOST_ALIKE, MOST_ALIKE)[:, None])


def effective_points(count: int, fitted: int) -> float:
    """Return number of points behind the estimate: correcting for the fit makes it less certain."""
    return max(1.0, count - 3.0 * fitted) ** 2 / count


def join(own: Array, points: float, others: Resemblance) -> Array:
    """Combine each row's autocorrelation, estimated from this number of points, with that of the others; at least 0."""
    both = (points * own + others.points * others.alike) / (points + others.points)
    return np.asarray(np.clip(both, 0.0, MOST_ALIKE))


def common_resemblance(resemblances: Sequence[Resemblance]) -> Resemblance:
    """Return what the series of one rig have in common: their mean, worth as many points as their scatter admits."""
    long_enough = [resemblance for resemblance in resemblances if resemblance.points > 1]
    if len(long_enough) < FEWEST_SERIES:
        return UNKNOWN
    points = sum(resemblance.points for resemblance in long_enough)
    mean = sum(resemblance.points * resemblance.alike for resemblance in long_enough) / points
    scatter = sum((resemblance.alike - mean) ** 2 for resemblance in long_enough) / (len(long_enough) - 1)
    chance = sum((1 - mean**2) / resemblance.points for resemblance in long_enough) / len(long_enough)
    excess = max(scatter - chance, (1 - mean**2) / min(points, MOST_POINTS))
    return Resemblance(mean, (1 - mean**2) / excess)


@dataclass(frozen=True)
class Fit:
    """The best step in a stretch, in logarithms."""

    cut: int
    """First point after it."""
    shift: float
    error: float
    """Standard error of `shift`, its place taken as known."""
    df: float
    before: float
    """Level just before it."""
    p: float
    """p-value for all places of the stretch together."""
    trend: bool
    resemblance: Resemblance = UNKNOWN
    """What was reckoned with."""

    def half_width(self, alpha: float) -> float:
        """Half the width of the interval around `shift` that misses the true one with probability `alpha`."""
        from scipy.special import stdtrit

        return -self.error * float(stdtrit(self.df, alpha / 2))


class _Scan:
    """A step fitted at every place, besides a mean or a line: of many rows at once, shape (rows, points).

    `alike` is the autocorrelation of each row, shape (rows, 1), or of all of them, shape (1, 1).
    """

    def __init__(self, rows: Array, alike: Array, *, trend: bool) -> None:
        count = rows.shape[1]
        self.trend, self._alike, self._count = trend, alike, count
        self._beside = _levels(alike, count, trend=trend)
        self.left = _innovations(rows, alike)
        for level in self._beside:
            self.left = self.left - (self.left * level).sum(axis=1, keepdims=True) * level
        self._leans = [self._of_steps(level) for level in self._beside]
        after = count - 1 - np.arange(1, count)
        self.weight: Array = 1 + (1 - alike) ** 2 * after - sum(lean**2 for lean in self._leans)
        """What a step of 1 leaves of its squares beside the mean or the line, at each place."""
        self.shifts = self._of_steps(self.left) / np.maximum(self.weight, 1e-12)
        explained = self.shifts**2 * self.weight
        self.inner = slice(FEWEST_A_SIDE - 1, count - FEWEST_A_SIDE)
        self.cuts = FEWEST_A_SIDE + explained[:, self.inner].argmax(axis=1)
        self.squares_without = (self.left**2).sum(axis=1)
        most = np.take_along_axis(explained, self.cuts[:, None] - 1, axis=1)[:, 0]
        self.squares = np.maximum(0.0, self.squares_without - most)
        self.df = count - 2 - trend

    def _of_steps(self, column: Array) -> Array:
        """Return the product of a column with a step of 1 at each place."""
        sums = column[:, ::-1].cumsum(axis=1)[:, ::-1]
        return np.asarray(self._alike * column[:, 1:] + (1 - self._alike) * sums[:, 1:])

    @property
    def residuals(self) -> Array:
        """What the best step leaves of each row."""
        places, rows, at = np.arange(self._count), np.arange(len(self.cuts)), self.cuts - 1
        step = (places >= self.cuts[:, None]).astype(float)
        step = _innovations(step, self._alike)
        for lean, level in zip(self._leans, self._beside, strict=True):
            step = step - np.broadcast_to(lean, self.shifts.shape)[rows, at][:, None] * level
        return np.asarray(self.left - self.shifts[rows, at][:, None] * step)

    @property
    def surprise(self) -> Array:
        """How much better the best step explains each row than none: twice the logarithm of the likelihoods' ratio."""
        return np.asarray(self.df * np.log(self.squares_without / np.maximum(self.squares, 1e-300)))

    def tail(self, bar: float) -> float:
        """Return the chance that noise passes a bar anywhere; of the first row."""
        from scipy.special import ndtr

        alike, weight = float(self._alike.flat[0]), self.weight[0, self.inner]
        after = self._count - 1 - np.arange(1, self._count)[self.inner][1:]
        both = (1 - alike) + (1 - alike) ** 2 * after
        for lean in self._leans:
            both = both - lean[0, self.inner][1:] * lean[0, self.inner][:-1]
        unlike = np.clip(1 - both / np.sqrt(weight[1:] * weight[:-1]), 0, None)
        density = math.exp(-bar * bar / 2) / math.sqrt(2 * math.pi)
        passed = float((unlike * np.exp(-OVERSHOOT * bar * np.sqrt(2 * unlike))).sum())
        return min(1.0, 2 * (float(ndtr(-bar)) + bar * density * passed))


def best_step(logs: Array, resemblance: Resemblance = UNKNOWN) -> Fit:
    """Return the best step in a stretch of at least four points, whose neighbours resemble each other as `known`."""
    from scipy.special import ndtri, stdtr

    scan, tick = _scan(logs, resemblance.alike), tick_of(logs)
    df = float(max(1, scan.df))
    variance = max(float(scan.squares[0]) / df, tick**2 / 12, 1e-24)
    at = int(scan.cuts[0]) - 1
    error = math.sqrt(variance / float(scan.weight[0, at]))
    shift = float(scan.shifts[0, at])
    bar = min(37.0, -float(ndtri(stdtr(df, -abs(shift) / error))))
    before = _level_before(logs, at + 1, shift, trend=scan.trend)
    return Fit(at + 1, shift, error, df, before, scan.tail(max(bar, 0.0)), scan.trend, resemblance)


def p_by_drawing(logs: Array, fit: Fit, others: Resemblance = UNKNOWN) -> float:
    """Return the p-value of a fit whatever the noise is like, as long as neighbours resemble each other alone.

    What resembles nothing is drawn again in another order, and neighbours are made to resemble each other as before: so
    two slow sessions in a row need be no step where one in ten is slow. They are made alike by a standard error more
    than is known, and how much they are is learned of each series that is drawn as it was of this one, from its points
    and what `others` tell: so not knowing it is part of the noise. Looks at no more than `NEAR` points on
    either side. Beyond what was drawn the tail goes on as it ends, exponentially (Knijnenburg et al., Bioinformatics
    25, 2009, who prefer a generalised Pareto; of a likelihood ratio the exponential is the limit).
    """
    near = logs[max(0, fit.cut - NEAR) : fit.cut + NEAR]
    own = fit.resemblance
    alike = min(MOST_ALIKE, own.alike + math.sqrt((1 - own.alike**2) / max(own.points, 1.0)))
    unlike = _Scan(near[None], np.array([[fit.resemblance.alike]]), trend=fit.trend).left
    drawn = np.random.default_rng(DRAWN).permuted(np.repeat(unlike, DRAWN, axis=0), axis=1)
    drawn[:, 0] /= math.sqrt(1 - alike**2)
    series = np.concatenate([near[None] - near.mean(), _resembling(drawn, alike)])
    observed, *others = _own_surprise(series, others, trend=fit.trend).tolist()
    return _tail_of(np.sort(others), observed)


def _resembling(rows: Array, alike: float) -> Array:
    """Return rows each of whose points is its own and so much of the one before it.

    As `scipy.signal.lfilter`, to import which takes a second.
    """
    result: Array = rows.copy()
    for place in range(1, rows.shape[1]):
        result[:, place] += alike * result[:, place - 1]
    return result


def _own_surprise(rows: Array, others: Resemblance, *, trend: bool) -> Array:
    """Return the surprise of each row's best step, its resemblance learned of what the step leaves."""
    first = _Scan(rows, np.zeros((1, 1)), trend=trend)
    fitted = 2 + trend
    own = autocorrelation(first.residuals, fitted)
    return _Scan(rows, join(own, effective_points(rows.shape[1], fitted), others), trend=trend).surprise


def _tail_of(ordered: Array, observed: float) -> float:
    """Return the chance of at least what was observed, by the numbers drawn, in ascending order."""
    count = len(ordered)
    begin = count - int(TAIL * count)
    start, beyond = float(ordered[begin - 1]), ordered[begin:]
    if observed <= start:
        return float(1 + count - np.searchsorted(ordered, observed)) / (1 + count)
    return len(beyond) / count * math.exp(-(observed - start) / max(float(beyond.mean()) - start, 1e-12))


def centre(logs: Array) -> Array:
    """Subtract the mean."""
    return np.asarray(logs - logs.mean())


def tick_of(logs: Array) -> float:
    """Return the smallest difference between two values: the tick of a coarse clock, else almost nothing."""
    gaps = np.diff(np.unique(logs))
    real = gaps[gaps > 1e-12]
    return float(real.min()) if len(real) else 0.0


def _scan(logs: Array, alike: float) -> _Scan:
    """Scan for a step, with a trend where one is evident: where it explains as much as a step, or much besides one."""
    from scipy.special import fdtrc

    row, similarity = (logs - logs.mean())[None], np.array([[alike]])
    step = _Scan(row, similarity, trend=False)
    if len(logs) < 2 * FEWEST_A_SIDE + 2:
        return step
    both = _Scan(row, similarity, trend=True)
    without, with_trend = float(step.squares[0]), float(both.squares[0])
    if float(both.squares_without[0]) <= without * (1 + BETTER / step.df):
        return both
    gained = (without - with_trend) / max(with_trend / both.df, 1e-24)
    return both if float(fdtrc(1, both.df, gained)) < EVIDENT else step


def _level_before(logs: Array, cut: int, shift: float, *, trend: bool) -> float:
    """Return the level just before a step of this size: the mean, or least squares' line half a point before it."""
    places = np.arange(len(logs)) - (cut - 0.5)
    rest = logs - shift * (places > 0)
    middle = float(rest.mean())
    if not trend:
        return middle
    centre = float(places.mean())
    away = places - centre
    return middle - centre * float(away @ rest) / float(away @ away)


def _levels(alike: Array, count: int, *, trend: bool) -> list[Array]:
    """Return orthonormal vectors beside a step: a constant, and perhaps a line."""
    levels: list[Array] = []
    for column in (np.ones(count), np.arange(count) - (count - 1) / 2)[: 1 + trend]:
        level = _innovations(np.broadcast_to(column, (len(alike), count)), alike)
        for other in levels:
            level = level - (level * other).sum(axis=1, keepdims=True) * other
        levels.append(level / np.sqrt((level**2).sum(axis=1, keepdims=True)))
    return levels


def _innovations(rows: Array, alike: Array) -> Array:
    """Subtract from each point its prediction by the point before."""
    begin = np.sqrt(1 - alike**2) * rows[:, :1]
    return np.concatenate([begin, rows[:, 1:] - alike * rows[:, :-1]], axis=1)
