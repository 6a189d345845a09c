"""How much neighbouring points of a series resemble each other: its autocorrelation of first order.

A few dozen points say little of it, and what they do not say has to be paid for in power. So the series of one rig,
whose commits were measured one after the other on the same device, tell of each other what they have in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

MOST_ALIKE = 0.95
"""Greatest autocorrelation that is reckoned with."""
FEWEST_SERIES = 3
"""Fewer tell nothing of what the series of a rig have in common."""
MOST_POINTS = 1000.0
"""No series is known better than by so many points of others: they are not quite alike."""

Array: TypeAlias = NDArray[np.float64]


class Resemblance(NamedTuple):
    """What is known of a series."""

    alike: float = 0.0
    """Autocorrelation; below 0 where neighbours were rather unlike."""
    points: float = 0.0
    """How many points it is known by."""

    @property
    def at_most(self) -> float:
        """A standard error more than is known."""
        return min(MOST_ALIKE, self.alike + math.sqrt((1 - self.alike**2) / max(self.points, 1.0)))


UNKNOWN = Resemblance()


def autocorrelation(residuals: Array, fitted: int) -> Array:
    """What lies behind the residuals in each row, shape (rows, 1).

    What fitting so many numbers took from it is given back (Kendall, Biometrika 41, 1954).
    """
    count = residuals.shape[1]
    power = np.maximum((residuals**2).sum(axis=1), 1e-24)
    alike = (residuals[:, 1:] * residuals[:, :-1]).sum(axis=1) / power
    mended = (count * alike + fitted) / max(1.0, count - 3.0 * fitted)
    return np.asarray(np.clip(mended, -MOST_ALIKE, MOST_ALIKE)[:, None])


def worth(count: int, fitted: int) -> float:
    """By how many points it is known: giving back what fitting took makes it less certain."""
    return max(1.0, count - 3.0 * fitted) ** 2 / count


def joined(own: Array, points: float, others: Resemblance) -> Array:
    """Each row's own autocorrelation, known by so many points, and what others tell; never below 0."""
    both = (points * own + others.points * others.alike) / (points + others.points)
    return np.asarray(np.clip(both, 0.0, MOST_ALIKE))


def in_common(found: Sequence[Resemblance]) -> Resemblance:
    """What the series of one rig have in common: their mean, worth as many points as their scatter admits."""
    known = [one for one in found if one.points > 1]
    if len(known) < FEWEST_SERIES:
        return UNKNOWN
    points = sum(one.points for one in known)
    mean = sum(one.points * one.alike for one in known) / points
    scatter = sum((one.alike - mean) ** 2 for one in known) / (len(known) - 1)
    chance = sum((1 - mean**2) / one.points for one in known) / len(known)
    excess = max(scatter - chance, (1 - mean**2) / min(points, MOST_POINTS))
    return Resemblance(mean, (1 - mean**2) / excess)
