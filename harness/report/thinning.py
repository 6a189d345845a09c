"""Which points of a long series a chart draws: few enough to be read, and none left out that would be missed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from harness.history.events import state_of
from harness.history.results import Point

BUCKETS = 100
"""Stretches of equal length, each drawn by its lowest and its highest latency."""
NEWEST = 40
"""Points at the end that are all drawn."""


def drawn(points: Sequence[Point], named: Collection[str] = ()) -> list[int]:
    """The places of the points to draw, in order; all of them if they are few.

    Kept are both sides of every change of state, the lowest and the highest latency of each of `BUCKETS` stretches (so
    the highest of all, too), the `NEWEST` last points, and the commits that are `named`.
    """
    if len(points) <= 2 * BUCKETS + NEWEST:
        return list(range(len(points)))
    edges = {0, *range(len(points) - NEWEST, len(points))}
    names = (place for place, point in enumerate(points) if point.commit in named)
    return sorted(edges.union(names, _changes(points), _extremes(points)))


def _changes(points: Sequence[Point]) -> Iterator[int]:
    looks = [(state_of(point), point.wall_ms is None) for point in points]
    for place, (before, after) in enumerate(pairwise(looks)):
        if before != after:
            yield from (place, place + 1)


def _extremes(points: Sequence[Point]) -> Iterator[int]:
    walls_ms = [point.wall_ms for point in points]
    bounds = [len(points) * number // BUCKETS for number in range(BUCKETS + 1)]
    for begin, end in pairwise(bounds):
        timed = [wall_ms for wall_ms in walls_ms[begin:end] if wall_ms is not None]
        if timed:
            yield walls_ms.index(min(timed), begin, end)
            yield walls_ms.index(max(timed), begin, end)
        else:
            yield begin  # a stretch of marks stays a stretch
