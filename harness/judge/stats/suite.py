"""Many series together: the false discovery rate, their mean, and the paths whose order changed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from harness.judge.stats.engine import compare
from harness.judge.stats.pair import RULES, Change, Rules
from harness.judge.stats.session import Samples
from harness.judge.verdict import Verdict

FALSE_DISCOVERIES = 0.05
"""Share of alarms that may be false, over a whole suite."""


def adjusted_p_values(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's adjusted p-values; NaN (nothing tested) stays NaN and does not count.

    As `scipy.stats.false_discovery_control`, to import which takes longer than to judge hundreds of series.
    """
    array = np.asarray(p_values, float)
    tested = np.flatnonzero(np.isfinite(array))
    largest_first = tested[np.argsort(array[tested])[::-1]]
    ranks = np.arange(len(tested), 0, -1)
    adjusted = np.full(len(array), np.nan)
    adjusted[largest_first] = np.minimum.accumulate(np.minimum(array[largest_first] * (len(tested) / ranks), 1.0))
    result: list[float] = adjusted.tolist()
    return result


def hold(changes: Sequence[Change]) -> list[Change]:
    """Return the changes, with alarms beyond the suite's false discovery rate as `inconclusive`.

    If nothing changed anywhere, the chance of any alarm left in the suite is at most `FALSE_DISCOVERIES`.
    """
    doubt = f"among {len(changes)} series this may be chance (adjusted p {{:.2g}}): confirm in fresh sessions"
    return [
        change.without_proof(doubt.format(p)) if change.verdict.changed and not p <= FALSE_DISCOVERIES else change
        for change, p in zip(changes, adjusted_p_values([change.p for change in changes]), strict=True)
    ]


@dataclass(frozen=True)
class Overall:
    """Geometric mean of head over base. Each series counts the same; NaN if there is none."""

    ratio: float
    low: float
    high: float
    """Interval at 95 % over the series, infinite for a single one: what another such suite might have shown."""
    series: int
    left_out: int
    """Series whose change is not known."""


@dataclass(frozen=True)
class Flip:
    """Two contestants whose order changed, for certain on both sides."""

    was_faster: str
    now_faster: str
    before: float
    """How much slower `now_faster` was, as a fraction of `was_faster`."""
    after: float
    """How much faster it is now, as a fraction below 0."""


def geometric_mean(changes: Sequence[Change]) -> Overall:
    """Average the relative changes of a suite. Inconclusive ones count too, if they have an estimate."""
    logs = [math.log1p(change.relative) for change in changes if -1 < change.relative < math.inf]
    left_out = len(changes) - len(logs)
    if not logs:
        return Overall(math.nan, math.nan, math.nan, 0, left_out)
    mean = sum(logs) / len(logs)
    half = _half_width(logs, mean)
    return Overall(math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(logs), left_out)


def flips(
    base: Mapping[str, Sequence[Samples]], head: Mapping[str, Sequence[Samples]], rules: Rules = RULES
) -> list[Flip]:
    """Contestants (paths of one model) whose order flipped from base to head. Both orders have to be certain."""
    result = []
    for first, second in combinations(sorted(base.keys() & head.keys()), 2):
        before = compare(base[first], base[second], rules)
        after = compare(head[first], head[second], rules)
        if (before.verdict, after.verdict) == (Verdict.SLOWER, Verdict.FASTER):
            result.append(Flip(first, second, before.relative, after.relative))
        if (before.verdict, after.verdict) == (Verdict.FASTER, Verdict.SLOWER):
            result.append(Flip(second, first, _as_share_of_other(before.relative), _as_share_of_other(after.relative)))
    return result


def _half_width(logs: Sequence[float], mean: float) -> float:
    from scipy.special import stdtrit

    if len(logs) < 2:
        return math.inf
    variance = sum((value - mean) ** 2 for value in logs) / (len(logs) - 1)
    return -float(stdtrit(len(logs) - 1, 0.025)) * math.sqrt(variance / len(logs))


def _as_share_of_other(relative: float) -> float:
    """Express a change as a fraction of the other side."""
    return 1 / (1 + relative) - 1
