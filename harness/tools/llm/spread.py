"""How far rounding moves an answer, position by position and column by column, and whether an error is more than that.

Half precision is off by percents where much is added, at some positions and columns ten times as far as at others. A
fault that is smaller than the largest rounding still moves most positions, or one column at most of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_IN_MEAN, MOST = 1.25, 6.0
"""Most that positions may be off in the mean, and one may be, in multiples of what rounding does there: 1.8 times as
far as any right library was (docs/data/trained-llm.md)."""
MOST_OF_COLUMN, CROWD = 3.0, 16
"""Most that a column may be off in the median of its positions, from so many positions on; rounding does about 0.7."""
LEAST_SHARE = 0.1
"""Least spread of a column, as a share of the typical one: what is nearly 0 may be rounded to 0."""
TINY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True)
class RoundingSpread:
    """What rounding does to an array of (positions, columns): to each number, the product of the two."""

    positions: Any
    """Root mean square of each position, relative to its columns'."""
    columns: Any
    """Median size in each column, relative to that of its position."""

    @classmethod
    def of(cls, draw: Any) -> RoundingSpread:
        """Return the spread of one draw of rounding errors."""
        sizes = np.abs(draw)
        columns = np.median(sizes / np.maximum(np.median(sizes, 1, keepdims=True), TINY), 0)
        columns = np.maximum(columns, LEAST_SHARE * np.median(columns) + TINY)
        return cls(np.maximum(_size(draw / columns), TINY), columns)

    @classmethod
    def of_all(cls, draws: Sequence[RoundingSpread]) -> RoundingSpread:
        """Return the spread that several draws show together."""
        positions = np.sqrt(np.mean([draw.positions**2 for draw in draws], 0))
        return cls(positions, np.mean([draw.columns for draw in draws], 0))

    @property
    def largest(self) -> float:
        """What rounding does where it does most."""
        return float(self.positions.max() * self.columns.max())

    def share_of(self, answer: Any) -> float:
        """Return how far rounding moves an answer, relative to what it is, at the median position."""
        return float(np.median(self.positions / _size(answer / self.columns)))

    def multiples(self, error: Any, begin: int) -> Any:
        """Return the multiple of its spread by which each position from `begin` on is off."""
        return _size(error / self.columns) / self._at(error, begin)

    def complain(self, error: Any, begin: int) -> str:
        """Say how errors at positions from `begin` on are more than rounding; empty if they are not.

        One position may be as far off as `MOST`, so few may be farther off in the mean than many.
        """
        multiples = self.multiples(error, begin)
        far, most = ~(multiples <= MOST), MOST_IN_MEAN + (MOST - MOST_IN_MEAN) / len(multiples)
        if far.any():
            return f"{_times(multiples[far.argmax()], MOST)} at position {begin + int(far.argmax())}"
        if multiples.mean() > most:
            return f"{_times(multiples.mean(), most)} in the mean of {len(multiples)} positions"
        columns = np.median(np.abs(error / self.columns) / self._at(error, begin)[:, None], 0)
        if len(multiples) >= CROWD and columns.max() > MOST_OF_COLUMN:
            return f"{_times(columns.max(), MOST_OF_COLUMN)} in column {int(columns.argmax())} at most positions"
        return ""

    def _at(self, error: Any, begin: int) -> Any:
        return self.positions[begin : begin + len(error)]


def _size(numbers: Any) -> Any:
    return np.sqrt(np.square(numbers, dtype=np.float64).mean(-1))


def _times(multiple: float, most: float) -> str:
    return f"is off by {multiple:.3g} times what rounding does (at most {most:.3g})"
