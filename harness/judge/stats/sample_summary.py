"""Percentiles of one set of samples, and an interval for the median."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.judge.stats.session import LONGEST_MS

TAIL = 40
"""The median lies beyond each end of its interval at most once in so many times: 95 % for both."""


@dataclass(frozen=True)
class SampleSummary:
    """Percentiles of samples in ms. Each of `min`, `p90`, `p99` and `max` is one of the samples."""

    count: int
    min_ms: float
    q1_ms: float
    median_ms: float
    q3_ms: float
    p90_ms: float
    p99_ms: float
    """The largest sample if there are fewer than a hundred."""
    max_ms: float
    mean_ms: float
    stddev_ms: float
    """Of the samples; 0 for one."""
    low_ms: float | None
    high_ms: float | None
    """Interval of the median by the order of the samples alone. None if there are too few. It knows nothing of the bias
    that the samples of a session share."""


def summarise_samples(samples_ms: Sequence[float]) -> SampleSummary | None:
    """Return the numbers of some samples; None without any, or if some are no times.

    Percentiles are nearest ranks (Hyndman and Fan 1996, type 1): real samples, never between two.
    """
    if not samples_ms or not all(0 <= one_ms <= LONGEST_MS for one_ms in samples_ms):
        return None
    ordered = sorted(samples_ms)
    low, high = median_ranks(len(ordered)) or (None, None)
    return SampleSummary(
        count=len(ordered),
        min_ms=ordered[0],
        q1_ms=_nearest(ordered, 0.25),
        median_ms=statistics.median(ordered),
        q3_ms=_nearest(ordered, 0.75),
        p90_ms=_nearest(ordered, 0.90),
        p99_ms=_nearest(ordered, 0.99),
        max_ms=ordered[-1],
        mean_ms=statistics.fmean(ordered),
        stddev_ms=statistics.stdev(ordered) if len(ordered) > 1 else 0.0,
        low_ms=None if low is None else ordered[low],
        high_ms=None if high is None else ordered[high],
    )


def median_ranks(count: int) -> tuple[int, int] | None:
    """Places of the ordered samples between which the median lies with 95 %; None below six samples.

    The number of samples below the median is binomial (Conover, Practical Nonparametric Statistics, section 3.2).
    """
    from scipy.special import bdtr

    places = int((bdtr(np.arange(float(count // 2)), count, 0.5) <= 1 / TAIL).sum())
    return (places - 1, count - places) if places else None


def _nearest(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
