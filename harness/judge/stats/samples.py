"""Are the samples of one session worth judging? What is wrong is said in words; nothing is repaired or dropped."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.judge.stats import robust

SHORTEST_MS, LONGEST_MS = 1e-9, 1e12


@dataclass(frozen=True)
class Limits:
    """What the samples of a session may do. Shares and relative changes are fractions."""

    fewest: int = 5
    independent: float = 0.12
    """Smallest share of independent samples that they may be worth; bites from about 25 samples on."""
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


@dataclass(frozen=True)
class Quality:
    """Whether samples can carry a verdict, and why not."""

    ok: bool
    reasons: tuple[str, ...] = ()
    effective: float = 0.0
    """How many independent samples they are worth."""


def check(samples_ms: Sequence[float], limits: Limits | None = None) -> Quality:
    """Judge samples in the order taken. Never raises for what numbers hold; text or None counts as not a number."""
    limits = limits or Limits()
    values = as_numbers(samples_ms)
    if complaint := invalid(values, limits):
        return Quality(False, (complaint,))
    effective = effective_size(values)
    found = (
        _too_alike(effective, len(values), limits),
        _warming_up(values, limits),
        _drifting(values, limits),
        _torn(values, limits),
    )
    reasons = tuple(reason for reason in found if reason)
    return Quality(not reasons, reasons, effective)


def as_numbers(values: Sequence[object]) -> list[float]:
    """The values as floats; what is not a number becomes NaN."""
    return [float(value) if isinstance(value, (int, float, np.number)) else math.nan for value in values]


def is_time(value_ms: float) -> bool:
    """Whether a number can be a latency at all."""
    return SHORTEST_MS <= value_ms <= LONGEST_MS


def effective_size(values: Sequence[float]) -> float:
    """How many independent samples the values are worth, between 1 and their number.

    Sums autocorrelations in adjacent pairs while the sums stay positive (Geyer, Statistical Science 7, 1992).
    Meant for finite values; of values that are all the same it is 1.
    """
    array = np.asarray(values, float)
    centred = array - array.mean()
    power = float(centred @ centred)
    if power == 0:
        return 1.0
    correlation = np.correlate(centred, centred, "full")[len(array) - 1 :] / power
    time = -1.0
    for lag in range(0, len(array) - 1, 2):
        pair = float(correlation[lag] + correlation[lag + 1])
        if pair <= 0:
            break
        time += 2 * pair
    return len(array) / max(1.0, min(time, len(array)))


def warm_up(values: Sequence[float]) -> int:
    """How many leading values lie on one side of the second half's noise (five standard deviations, or 2 %)."""
    array = np.asarray(values, float)
    settled = array[len(array) // 2 :]
    middle = robust.median(settled)
    off = array - middle
    outside = np.abs(off) > max(5 * robust.spread(settled), 0.02 * abs(middle))
    leading = outside & (np.sign(off) == np.sign(off[0]))
    return len(array) if leading.all() else int(np.argmin(leading))


def drift(values: Sequence[float]) -> float:
    """Relative change from first to last along the Theil-Sen line: the median slope of all pairs."""
    array = np.asarray(values, float)
    first, second = _pairs(len(array))
    slope = robust.median((array[second] - array[first]) / (second - first))
    return slope * (len(array) - 1) / robust.median(values)


@functools.lru_cache(64)
def _pairs(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The places of all pairs of different values."""
    return np.triu_indices(count, 1)


def modes(values: Sequence[float], fewest_share: float = 0.2) -> tuple[float, float]:
    """Split values in two where that explains most variance: the share explained, and the distance of the two means.

    The distance is in the unit of the values. Otsu's criterion (IEEE Trans. SMC 9, 1979) on sorted values.
    """
    ordered = np.sort(np.asarray(values, float))
    count, variance = len(ordered), float(ordered.var())
    left = np.arange(1, count)
    sums = np.cumsum(ordered)
    apart = (sums[-1] - sums[:-1]) / (count - left) - sums[:-1] / left
    share = left / count
    between = np.where(np.minimum(share, 1 - share) >= fewest_share, share * (1 - share) * apart**2, 0.0)
    best = int(between.argmax())
    return (float(between[best]) / variance if variance > 0 else 0.0), float(apart[best])


def invalid(values: list[float], limits: Limits) -> str:
    """Why these cannot be times at all; empty if they can."""
    if len(values) < limits.fewest:
        return f"{len(values)} samples; at least {limits.fewest} are needed"
    odd = [value for value in values if not is_time(value)]
    if odd:
        return f"{len(odd)} of {len(values)} samples are no times (the first: {odd[0]:g})"
    if min(values) == max(values):
        return f"all {len(values)} samples are {values[0]:g} ms: the clock is too coarse or stands still"
    return ""


def _too_alike(effective: float, count: int, limits: Limits) -> str:
    if effective >= limits.independent * count:
        return ""
    return f"the {count} samples follow each other: they are worth only {effective:.1f} independent ones"


def _warming_up(values: list[float], limits: Limits) -> str:
    slow = warm_up(values)
    return "" if slow <= limits.warm_up * len(values) else f"the first {slow} of {len(values)} samples are a warm-up"


def _drifting(values: list[float], limits: Limits) -> str:
    change = drift(values)
    if abs(change) < limits.drift:
        return ""
    from scipy.stats import kendalltau  # half a second that hardly any session needs

    if kendalltau(range(len(values)), values).pvalue > limits.drift_p:
        return ""
    return f"the samples drift by {change:+.1%} from first to last"


def _torn(values: list[float], limits: Limits) -> str:
    explained, apart = modes([math.log(value) for value in values], limits.fewest_in_mode)
    if explained < limits.modes_explain or apart < math.log1p(limits.modes_apart):
        return ""
    return f"the samples fall into two groups {math.expm1(apart):.1%} apart"
