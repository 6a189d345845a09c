"""Boundaries of a test that looks several times: its error is spent look by look, so that it holds over all of them.

Lan and DeMets, Biometrika 70 (1983), with the power family of Kim and DeMets, Biometrika 74 (1987): after a share `s`
of the planned sessions, `error * s**SHAPE` of the error is spent. The joint density of the statistic is carried from
look to look by the recursion of Armitage, McPherson and Rowe, J. R. Stat. Soc. A 132 (1969).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SHAPE = 2.0
"""Between Pocock's boundaries, which stop early, and O'Brien and Fleming's, which keep the power of a single look.
docs/explanation/verdicts.md has what was tried."""
LOWEST = -8.0
"""Standard deviations below which no path is followed."""
POINTS = 401

Array = NDArray[np.float64]


@functools.lru_cache(256)
def boundaries(error: float, looks: int) -> tuple[float, ...]:
    """Return the boundaries of a standard normal statistic at `looks` evenly spaced looks.

    The chance that it ever does while there is nothing is `error` (one-sided).
    """
    spent = [error * ((look + 1) / looks) ** SHAPE for look in range(looks)]
    return solve(spent, looks)


def solve(spent: Sequence[float], looks: int) -> tuple[float, ...]:
    """Return the boundaries of evenly spaced looks that have spent these errors."""
    from scipy.special import ndtri

    boundaries = [float(-ndtri(spent[0]))]
    path = _Path.start(boundaries[0], 1 / looks)
    for look in range(1, looks):
        boundaries.append(path.boundary(spent[look] - spent[look - 1], (look + 1) / looks))
        path = path.carry(boundaries[-1], (look + 1) / looks)
    return tuple(boundaries)


class _Path:
    """The density of a Brownian motion at `share` of its time, of those paths that stayed below every boundary."""

    def __init__(self, grid: Array, density: Array, share: float) -> None:
        self._grid, self._share = grid, share
        weights = np.full(len(grid), grid[1] - grid[0])
        weights[[0, -1]] /= 2
        self._mass = weights * density

    @classmethod
    def start(cls, bound: float, share: float) -> _Path:
        grid = np.linspace(LOWEST, bound, POINTS) * math.sqrt(share)
        return cls(grid, np.exp(-grid * grid / (2 * share)) / math.sqrt(2 * math.pi * share), share)

    def chance(self, bound: float, share: float) -> float:
        """Chance of being above the boundary at the next look."""
        from scipy.special import ndtr

        step = math.sqrt(share - self._share)
        return float(self._mass @ ndtr((self._grid - bound * math.sqrt(share)) / step))

    def boundary(self, error: float, share: float) -> float:
        """Return the boundary that is passed with this chance at the next look."""
        from scipy.optimize import brentq

        return float(brentq(lambda bound: self.chance(bound, share) - error, -1.0, 12.0, xtol=1e-9))

    def carry(self, bound: float, share: float) -> _Path:
        """Carry the distribution to the next look, without what passed its boundary."""
        step = math.sqrt(share - self._share)
        grid = np.linspace(LOWEST, bound, POINTS) * math.sqrt(share)
        kernel = np.exp(-(((grid[:, None] - self._grid) / step) ** 2) / 2) / (step * math.sqrt(2 * math.pi))
        return _Path(grid, kernel @ self._mass, share)
