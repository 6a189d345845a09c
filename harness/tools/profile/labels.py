"""Which operators of a roofline have their name beside their mark, and on which side of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from harness.tools.profile.roofline import RooflinePoint

LARGEST_PX, SMALLEST_PX = 40.0, 6.0
"""Size of an operator's mark if it took all the time, and of the smallest."""
NAMED = 3
"""Operators of each case that may have their name beside them, those that take longest."""
WIDTH_PX, HEIGHT_PX = 700.0, 330.0
"""What the marks span at least: the page draws no names where it is narrower."""
LETTER_PX, LINE_PX = 6.0, 14.0
"""Room of a letter and of a line in the font of the names."""
MARGIN = 0.05
"""Room around the marks, as a share of what they span."""

Key = tuple[str, int]
"""An operator: case, and place in its list."""


class Box(NamedTuple):
    """A part of the figure, in shares of what the marks span."""

    left: float
    low: float
    right: float
    high: float

    def overlaps(self, other: Box) -> bool:
        """Return whether both cover some part."""
        across = self.left < other.right and other.left < self.right
        return across and self.low < other.high and other.low < self.high

    @property
    def inside(self) -> bool:
        """Whether the figure has room for it."""
        return min(self.left, self.low) >= -MARGIN and max(self.right, self.high) <= 1 + MARGIN


def mark_px(point: RooflinePoint) -> float:
    """Return the diameter of a mark: its area is the operator's share of the time."""
    return max(SMALLEST_PX, LARGEST_PX * math.sqrt(point.share))


def label_sides(points: Mapping[str, Sequence[RooflinePoint]]) -> dict[Key, str]:
    """Return where the names of operators stand, in plotly's words.

    Those that take longest come first. An operator of both cases has one name, and no name covers a mark, another name
    or the axes: what has no room is left out.
    """
    x_of = _scale(point.intensity for of_case in points.values() for point in of_case)
    y_of = _scale(point.gflop_s for of_case in points.values() for point in of_case)

    def mark(point: RooflinePoint) -> Box:
        x, y, half_px = x_of(point.intensity), y_of(point.gflop_s), mark_px(point) / 2
        return Box(x - half_px / WIDTH_PX, y - half_px / HEIGHT_PX, x + half_px / WIDTH_PX, y + half_px / HEIGHT_PX)

    covered = [mark(point) for of_case in points.values() for point in of_case]
    longest = [(case, place, point) for case, of_case in points.items() for place, point in enumerate(of_case[:NAMED])]
    sides: dict[Key, str] = {}
    names: set[str] = set()
    for case, place, point in sorted(longest, key=lambda label: -label[2].share):
        boxes = {} if point.label in names else _boxes(mark(point), point.label)
        for side, box in boxes.items():
            if box.inside and not any(box.overlaps(other) for other in covered):
                covered.append(box)
                names.add(point.label)
                sides[case, place] = side
                break
    return sides


def _boxes(mark: Box, label: str) -> dict[str, Box]:
    """Return what a name would cover on each side of its mark."""
    width, height = LETTER_PX * len(label) / WIDTH_PX, LINE_PX / HEIGHT_PX
    x, y = (mark.left + mark.right) / 2, (mark.low + mark.high) / 2
    return {
        "top center": Box(x - width / 2, mark.high, x + width / 2, mark.high + height),
        "bottom center": Box(x - width / 2, mark.low - height, x + width / 2, mark.low),
        "middle left": Box(mark.left - width, y - height / 2, mark.left, y + height / 2),
        "middle right": Box(mark.right, y - height / 2, mark.right + width, y + height / 2),
    }


def _scale(values: Iterable[float]) -> Callable[[float], float]:
    """Return what places a number between the least and the largest on a logarithmic scale, from 0 to 1."""
    numbers = list(values)
    low, span = min(numbers), math.log(max(numbers) / min(numbers)) or 1.0
    return lambda value: math.log(value / low) / span
