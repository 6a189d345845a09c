"""What other tools make of the same sessions: one number each, larger for slower, so that each has its best bar."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.stats import norm

from benchmarks.detection_rigs import Rig

Sessions = list[list[float]]
Score = Callable[[Sessions, Sessions], float]
"""Of base and head, as many sessions of each."""

BAR = 0.005
"""False alarms that a bar may let through."""
SESSIONS_FOR_SD = 60


def plain(base: Sessions, head: Sessions) -> float:
    """Ratio of the medians of all samples."""
    return float(np.median(head) / np.median(base)) - 1


def pytest_benchmark(base: Sessions, head: Sessions) -> float:
    """Return what `--benchmark-compare-fail=mean:5%` compares with its 5 %."""
    from pytest_benchmark.utils import parse_compare_fail

    check = parse_compare_fail("mean:5%")
    return float(check.compute({"mean": float(np.mean(head))}, {"mean": float(np.mean(base))})) / 100


def asv_compare(base: Sessions, head: Sessions) -> float:
    """Return what `asv compare` compares with its factor: the ratio, where its own test finds a difference."""
    from asv._stats import is_different
    from asv_runner.statistics import compute_stats

    first, second = _pool(base), _pool(head)
    (was, was_stats), (now, now_stats) = compute_stats(first, 1), compute_stats(second, 1)
    return now / was - 1 if is_different(first, second, was_stats, now_stats) else -math.inf


PEERS: dict[str, Score] = {
    "asv compare": asv_compare,
    "pytest-benchmark": pytest_benchmark,
    "plain medians": plain,
}


def limit(rig: Rig, step: float, a_side: int) -> float:
    """Return the power of the best test of `a_side` sessions that may know the noise, at the same bar.

    `norm.cdf(step / sqrt(2 (s**2 + w**2 / m) / n) - z)`, with the noise of a session's mean taken from the rig itself:
    half the mean square of what a session differs by from the one before, so that a drift is no noise.
    """
    logs = np.log([rig.session() for _ in range(SESSIONS_FOR_SD)]).mean(axis=1)
    variance = float(np.mean(np.diff(logs) ** 2)) / 2
    return float(norm.cdf(math.log1p(step) / math.sqrt(2 * variance / a_side) - norm.isf(BAR)))


def _pool(sessions: Sessions) -> list[float]:
    return [sample for samples in sessions for sample in samples]
