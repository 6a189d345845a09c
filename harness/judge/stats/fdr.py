"""Hold the alarms of a whole suite to a false discovery rate: with many series, some look changed by chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from harness.judge.stats.pair import Change


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's adjusted p-values; NaN (nothing tested) stays NaN and does not count.

    As `scipy.stats.false_discovery_control`, to import which takes longer than to judge hundreds of series.
    """
    array = np.asarray(p_values, float)
    tested = np.flatnonzero(np.isfinite(array))
    largest_first = tested[np.argsort(array[tested])[::-1]]
    ranks = np.arange(len(tested), 0, -1)
    held = np.full(len(array), np.nan)
    held[largest_first] = np.minimum.accumulate(np.minimum(array[largest_first] * (len(tested) / ranks), 1.0))
    found: list[float] = held.tolist()
    return found


def hold(changes: Sequence[Change], rate: float = 0.05) -> list[Change]:
    """The same changes, those alarms `inconclusive` that the suite as a whole cannot hold at this false discovery rate.

    If nothing changed anywhere, the chance of any alarm left in the suite is at most `rate`.
    """
    return [
        _withdrawn(change, p, len(changes)) if change.verdict.changed and not p <= rate else change
        for change, p in zip(changes, adjusted([change.p for change in changes]), strict=True)
    ]


def _withdrawn(change: Change, p: float, series: int) -> Change:
    reason = f"among {series} series this may be chance (adjusted p {p:.2g}): confirm in fresh sessions"
    return change.unproved(reason)
