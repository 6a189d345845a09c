"""Location and spread that a few bad values cannot move. Every function takes finite numbers, at least one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = "Sequence[float] | NDArray[np.float64]"

MAD_TO_SD = 1.4826
"""Median absolute deviation times this is the standard deviation of normal noise."""
HODGES_LEHMANN_LOSS = 1.0233
"""Standard error of Hodges-Lehmann over that of the mean, for normal noise: the root of pi / 3."""
QUARTILE_LOSS = 1.3626
"""The same of the lower quartile: the root of 3 / 16 over the normal density there."""
FEW = 24
"""Up to so many numbers plain Python is quicker than NumPy's calls (a sixth of the time at 12, half of it at 24)."""


def median(values: Numbers) -> float:
    """The middle value."""
    return _middle(np.asarray(values, float))


def spread(values: Numbers) -> float:
    """Standard deviation estimated from the median absolute deviation, in the unit of the values."""
    array = np.asarray(values, float)
    return MAD_TO_SD * _middle(np.abs(array - _middle(array)))


def _middle(array: NDArray[np.float64]) -> float:
    """What `np.median` gives, without its look for NaN, which takes ten times as long as sorting a dozen numbers."""
    ordered = np.sort(array, axis=None)
    count = len(ordered)
    return float((ordered[(count - 1) // 2] + ordered[count // 2]) / 2)


def location(values: Numbers) -> float:
    """Hodges-Lehmann location: the median of the means of all pairs, each value with itself included.

    For normal noise as sharp as the mean within 2 %, where the median loses 25 %; 29 % of the values may be
    arbitrarily wrong. Hodges and Lehmann, Annals of Mathematical Statistics 34 (1963).
    """
    halves = [float(value) / 2 for value in values]
    if len(halves) <= FEW:
        return statistics.median([one + other for place, one in enumerate(halves) for other in halves[place:]])
    array = np.asarray(halves)
    first, second = np.triu_indices(len(array))
    return _middle(array[first] + array[second])
