"""One step in a stretch of a series: the place that least squares gives it, its size, and how sure it is.

A steady trend is part of the fit where one is evident, and only there, for it costs power elsewhere. Where neighbours
resemble each other (first-order autocorrelation of what is left), a step has to be larger in proportion, and noise is
never less than what rounding to the ticks of a coarse clock makes.

The largest of many statistics, one for each place, is larger than one of them. Its tail is that of Siegmund (Sequential
Analysis, 1985; with James and James, Biometrika 74, 1987): for a bar b, twice P(Z > b) + b f(b) times the sum over
places of (1 - r) exp(-0.583 b sqrt(2 (1 - r))), r being the correlation of neighbouring statistics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST_A_SIDE = 2
"""One point may yet come back."""
EVIDENT = 0.001
"""A trend beside a step is evident below this p-value."""
BETTER = 9.0
"""By so many variances a step has to explain more than a line does, or it is the line that is evident."""
OVERSHOOT = 0.583
"""Siegmund's constant for a walk that is looked at in steps."""
SHUFFLES, NEAR = 1999, 60
"""Shuffled series that a step is compared with, and points of them on either side of it."""
MOST_ALIKE = 0.95
"""Greatest autocorrelation that is reckoned with."""

Array = NDArray[np.float64]


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
    alike: float
    """How many neighbouring points are worth one."""

    def half_width(self, alpha: float) -> float:
        """Half the width of the interval around `shift` that misses the true one with probability `alpha`."""
        from scipy.special import stdtrit

        return -self.error * float(stdtrit(self.df, alpha / 2))


class _Scan:
    """A step fitted at every place, besides a mean or a line."""

    def __init__(self, logs: Array, *, trend: bool) -> None:
        count = len(logs)
        times = np.arange(count) - (count - 1) / 2
        self.mean, self.trend = float(logs.mean()), trend
        self.left = logs - self.mean
        self.wide = float(times @ times) if trend else math.inf
        self.slope = float(times @ self.left) / self.wide
        self.left = self.left - self.slope * times
        cuts = np.arange(1, count)
        after = count - cuts
        self.lean = after * cuts / 2 / self.wide
        """Slope of a line fitted to a step of 1 at each place."""
        self.weight = after * cuts / count - self.lean * (after * cuts / 2)
        """What a step of 1 leaves of its squares beside the mean or the line."""
        self.shifts = -np.cumsum(self.left)[:-1] / np.maximum(self.weight, 1e-12)
        explained = self.shifts**2 * self.weight
        inner = slice(FEWEST_A_SIDE - 1, count - FEWEST_A_SIDE)
        self.cut = FEWEST_A_SIDE + int(explained[inner].argmax())
        self.squares_without = float(self.left @ self.left)
        self.squares = max(0.0, self.squares_without - float(explained[self.cut - 1]))
        self.df = count - 2 - trend
        self.times, self._count, self._inner = times, count, inner

    @property
    def residuals(self) -> Array:
        """What the best step leaves."""
        at = self.cut - 1
        step = np.where(np.arange(self._count) >= self.cut, 1.0, 0.0)
        expected = step - (self._count - self.cut) / self._count - self.lean[at] * self.times
        return np.asarray(self.left - self.shifts[at] * expected)

    @property
    def before(self) -> float:
        """Level just before the best step."""
        at = self.cut - 1
        shift = float(self.shifts[at])
        slope = self.slope - shift * float(self.lean[at])
        return self.mean - shift * (self._count - self.cut) / self._count + slope * float(self.times[at] + 0.5)

    def tail(self, bar: float) -> float:
        """The chance that noise passes a bar anywhere."""
        from scipy.special import ndtr

        weight, lean = self.weight[self._inner], self.lean[self._inner][1:]
        after = self._count - np.arange(1, self._count)[self._inner][1:]
        both = weight[1:] - after / self._count - lean * self.times[self._inner.start + 1 : self._inner.stop]
        apart = np.clip(1 - both / np.sqrt(weight[1:] * weight[:-1]), 0, None)
        density = math.exp(-bar * bar / 2) / math.sqrt(2 * math.pi)
        passed = float((apart * np.exp(-OVERSHOOT * bar * np.sqrt(2 * apart))).sum())
        return min(1.0, 2 * (float(ndtr(-bar)) + bar * density * passed))


def best_step(logs: Array, alike: float = 1.0) -> Fit:
    """The best step in a stretch of at least four points, of which so many that are `alike` are worth one."""
    from scipy.special import ndtri, stdtr

    scan, tick = _scan(logs), tick_of(logs)
    alike = max(alike, inflation(scan.residuals, 2 + scan.trend))
    df = max(1.0, scan.df / alike)
    variance = max(scan.squares / max(scan.df, 1) * alike, tick**2 / 12, 1e-24)
    at = scan.cut - 1
    error = math.sqrt(variance / float(scan.weight[at]))
    shift = float(scan.shifts[at])
    bar = min(37.0, -float(ndtri(stdtr(df, -abs(shift) / error))))
    return Fit(scan.cut, shift, error, df, scan.before, scan.tail(max(bar, 0.0)), scan.trend, alike)


def p_shuffled(logs: Array, fit: Fit) -> float:
    """The p-value of a fit whatever the noise is like, as long as its points could change places.

    The tail of `Fit.p` is that of normal noise; two slow sessions in a row need be no step where one in ten is slow.
    Looks at no more than `NEAR` points on either side.
    """
    begin = max(0, fit.cut - NEAR)
    near = logs[begin : fit.cut + NEAR]
    scan = _Scan(near, trend=fit.trend)
    shuffled = np.random.default_rng(SHUFFLES).permuted(np.tile(scan.left, (SHUFFLES, 1)), axis=1)
    if fit.trend:
        shuffled -= np.outer(shuffled @ scan.times / scan.wide, scan.times)
    inner = slice(FEWEST_A_SIDE - 1, len(near) - FEWEST_A_SIDE)
    sums = np.cumsum(shuffled, axis=1)[:, :-1][:, inner]
    most = (sums**2 / scan.weight[inner]).max(axis=1)
    observed = (scan.squares_without - scan.squares) / fit.alike
    return (1 + int(np.count_nonzero(most >= observed * (1 - 1e-9)))) / (1 + SHUFFLES)


def centred(logs: Array) -> Array:
    """Less their mean."""
    return np.asarray(logs - logs.mean())


def detrended(logs: Array) -> Array:
    """Less their line."""
    return _Scan(logs, trend=True).left if len(logs) > FEWEST_A_SIDE + 1 else centred(logs)


def tick_of(logs: Array) -> float:
    """The smallest difference between two values that differ: of a coarse clock its tick, else next to nothing."""
    gaps = np.diff(np.unique(logs))
    real = gaps[gaps > 1e-12]
    return float(real.min()) if len(real) else 0.0


def _scan(logs: Array) -> _Scan:
    """With a trend where one is evident: where it explains as much as a step, or much besides one."""
    from scipy.special import fdtrc

    step = _Scan(logs, trend=False)
    if len(logs) < 2 * FEWEST_A_SIDE + 2:
        return step
    both = _Scan(logs, trend=True)
    if both.squares_without <= step.squares * (1 + BETTER / step.df):
        return both
    gained = (step.squares - both.squares) / max(both.squares / both.df, 1e-24)
    return both if float(fdtrc(1, both.df, gained)) < EVIDENT else step


def inflation(residuals: Array, fitted: int) -> float:
    """How many neighbouring points are worth one independent point, for a mean; at least 1.

    An autoregressive series of first order; what fitting took from its correlation (Kendall, Biometrika 41, 1954) is
    given back.
    """
    power = float(residuals @ residuals)
    if power <= 1e-24:
        return 1.0
    count = len(residuals)
    alike = float(residuals[1:] @ residuals[:-1]) / power
    alike = min(MOST_ALIKE, (count * alike + fitted) / max(1.0, count - 3.0 * fitted))
    return (1 + alike) / (1 - alike) if alike > 0 else 1.0
