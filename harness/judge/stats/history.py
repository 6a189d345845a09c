"""A series over its commits: where it stepped, which points were mere outliers, and how much it usually moves.

Potts segmentation proposes steps, as in asv; a step then has to pass a permutation test, as in E-divisive, and what
fails is merged, weakest first, as in Otava's second pass. Permuting assumes nothing of the noise but that its points
are exchangeable; where neighbours resemble each other, the step has to be larger in proportion. A run of one or two
points that comes back is an outlier, found by Hampel's filter. Potts: Boysen et al., Annals of Statistics 37 (2009);
its search: Jackson et al., IEEE Signal Processing Letters 12 (2005); E-divisive: Matteson and James, JASA 109 (2014).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from harness.judge.stats import robust
from harness.judge.stats.samples import as_numbers, effective_size, is_time

WINDOW = 30
"""Commits that a series' threshold looks back on (rustc-perf, docs/comparison-analysis.md)."""
FEWEST = 6
"""Fewest points of a series in which a step can be told."""
REACH = 2
"""An outlier comes back within this many points."""
OUTLIER = 4.0
"""Standard deviations from its neighbours' median that make a point an outlier."""

PERMUTATIONS = 999
RESTLESS = 0.25
"""A series whose points are worth less than this share of their number drifts."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Step:
    """A change that stayed."""

    index: int
    """First point after it, counted in the series as given."""
    relative: float
    """Fraction: 0.05 is 5 % slower."""
    before_ms: float
    after_ms: float
    p: float
    """p-value, for all places together."""


@dataclass(frozen=True)
class History:
    """What a series did. Indices count the series as given."""

    steps: tuple[Step, ...] = ()
    outliers: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why nothing, or not all of it, could be judged."""

    @property
    def judged(self) -> bool:
        """Whether there was enough to tell a step."""
        return not self.reasons or bool(self.steps)


def segment(locations_ms: Sequence[float], alpha: float = 0.005, relevant: float = 0.0) -> History:
    """Find the steps of a series: one location per commit, in commit order; a missing point is NaN.

    `alpha` is the chance of any step in a series that has none; steps smaller than `relevant` (a fraction) are merged.
    Never raises for data: what is not a positive number is left out.
    """
    values = as_numbers(locations_ms)
    valid = [index for index, value in enumerate(values) if is_time(value)]
    if len(valid) < FEWEST:
        return History(reasons=(f"{len(valid)} points; at least {FEWEST} are needed",))
    logs = np.log(np.asarray([values[index] for index in valid]))
    noise = _noise(logs)
    odd = _outliers(logs, noise)
    kept = np.flatnonzero(~odd)
    steady = logs[kept]
    cuts = _significant(steady, _propose(steady, noise), alpha, math.log1p(relevant))
    return History(
        steps=tuple(_step(steady, cuts, number, valid[kept[cuts[number]]]) for number in range(1, len(cuts) - 1)),
        outliers=tuple(valid[index] for index in np.flatnonzero(odd)),
        reasons=_restless(steady, cuts),
    )


def threshold(locations_ms: Sequence[float], default: float = 0.05) -> float:
    """Largest change from one commit to the next that is usual for a series, as a fraction: Q3 + 3 IQR over 30.

    rustc-perf's rule. With fewer than ten changes to learn from it is `default`, or what they show if that is more.
    """
    values = [value for value in as_numbers(locations_ms) if is_time(value)][-WINDOW - 1 :]
    moves = [abs(math.log(after / before)) for before, after in pairwise(values)]
    if not moves:
        return default
    first, third = robust.quantile(moves, 0.25), robust.quantile(moves, 0.75)
    usual = math.expm1(third + 3 * (third - first))
    return usual if len(moves) >= 10 else max(usual, default)


def _noise(logs: Array) -> float:
    """Standard deviation about the steps: from neighbours' differences, which a step moves only once."""
    return robust.MAD_TO_SD * float(np.median(np.abs(np.diff(logs)))) / math.sqrt(2)


def _outliers(logs: Array, noise: float) -> NDArray[np.bool_]:
    """Points far from the median of their neighbourhood, which shrinks to stay symmetric at both ends."""
    odd = np.zeros(len(logs), bool)
    for index in range(len(logs)):
        reach = min(REACH, index, len(logs) - 1 - index)
        near = logs[index - reach : index + reach + 1]
        odd[index] = abs(logs[index] - np.median(near)) > OUTLIER * noise
    return odd


def _propose(logs: Array, noise: float) -> list[int]:
    """Cuts of the least-squares Potts fit with at least two points a segment, 0 and the length included."""
    count = len(logs)
    penalty = 2 * max(noise, 1e-12) ** 2 * math.log(count)
    sums, squares = np.concatenate([[0.0], np.cumsum(logs)]), np.concatenate([[0.0], np.cumsum(logs**2)])
    best = np.full(count + 1, math.inf)
    best[0], last = -penalty, np.zeros(count + 1, int)
    for end in range(2, count + 1):
        starts = np.arange(end - 1)
        cost = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        total = best[starts] + cost + penalty
        last[end] = int(total.argmin())
        best[end] = total[last[end]]
    cuts = [count]
    while cuts[-1] > 0:
        cuts.append(int(last[cuts[-1]]))
    return cuts[::-1]


def _significant(logs: Array, cuts: list[int], alpha: float, relevant: float) -> list[int]:
    """Merge across the least certain cut until every cut left is certain and relevant."""
    while len(cuts) > 2:
        certainty = [_p(logs, cuts, number) for number in range(1, len(cuts) - 1)]
        small = [abs(_change(logs, cuts, number)) < relevant for number in range(1, len(cuts) - 1)]
        weakest = max(range(len(certainty)), key=lambda number: (small[number], certainty[number]))
        if certainty[weakest] <= alpha and not small[weakest]:
            break
        cuts = cuts[: weakest + 1] + cuts[weakest + 2 :]
    return cuts


def _p(logs: Array, cuts: list[int], number: int) -> float:
    """p-value of one cut given its neighbours, for all places where the series could have been cut."""
    window, cut = logs[cuts[number - 1] : cuts[number + 1]], cuts[number] - cuts[number - 1]
    observed = _explained(window[None, :])[0, cut - 1] / _resemblance(logs, cuts)
    shuffled = np.random.default_rng(PERMUTATIONS).permuted(np.tile(window, (PERMUTATIONS, 1)), axis=1)
    as_large = int(np.count_nonzero(_explained(shuffled)[:, 1:-1].max(axis=1) >= observed * (1 - 1e-9)))
    return min(1.0, (1 + as_large) / (1 + PERMUTATIONS) * len(logs) / len(window))


def _resemblance(logs: Array, cuts: list[int]) -> float:
    """How many neighbouring points are worth one independent point, between the cuts; 1 for white noise."""
    residuals = np.concatenate([logs[a:b] - logs[a:b].mean() for a, b in pairwise(cuts)])
    return len(logs) / effective_size(residuals.tolist()) if np.ptp(residuals) > 1e-12 else 1.0


def _restless(logs: Array, cuts: list[int]) -> tuple[str, ...]:
    worth = len(logs) / _resemblance(logs, cuts)
    if worth >= RESTLESS * len(logs):
        return ()
    return (f"the series drifts: its {len(logs)} points are worth {worth:.0f}, and smaller steps cannot be told",)


def _explained(rows: Array) -> Array:
    """Sum of squares that a cut after each point but the last explains, for each row."""
    count = rows.shape[1]
    left = np.arange(1, count)
    sums = np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1)[:, :-1]
    return np.asarray(sums**2 * count / (left * (count - left)))


def _change(logs: Array, cuts: list[int], number: int) -> float:
    before, after = logs[cuts[number - 1] : cuts[number]], logs[cuts[number] : cuts[number + 1]]
    return float(after.mean() - before.mean())


def _step(logs: Array, cuts: list[int], number: int, index: int) -> Step:
    before, after = logs[cuts[number - 1] : cuts[number]], logs[cuts[number] : cuts[number + 1]]
    low, high = math.exp(robust.location(before.tolist())), math.exp(robust.location(after.tolist()))
    return Step(index, high / low - 1, low, high, _p(logs, cuts, number))
