"""Hold the alarms of a whole suite to a false discovery rate: with many series, some look changed by chance."""

from __future__ import annotations

import math
from collections.abc import Sequence

from harness.judge.stats.pair import Change


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's adjusted p-values; NaN (nothing tested) stays NaN and does not count."""
    from scipy.stats import false_discovery_control

    tested = [index for index, p in enumerate(p_values) if math.isfinite(p)]
    result = [math.nan] * len(p_values)
    if tested:
        held = false_discovery_control([p_values[index] for index in tested], method="bh")
        for index, p in zip(tested, held, strict=True):
            result[index] = float(p)
    return result


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
