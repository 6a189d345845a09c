"""The points of a history: which of a long series are drawn, and all of them as comma-separated values."""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from harness.base.outcome import CaseState
from harness.judge.history.results import History, Point
from harness.judge.report import words

POINTS = "points.csv"
COLUMNS = ("machine", "case", "quirks", "commit", "day", "tvm", "state", "wall_ms", "low_ms", "high_ms", "message")

STATES = {state: state.value for state in CaseState}


def write_points(history: History, folder: Path) -> None:
    """Write `POINTS` in the folder: a line of names, and a line for each point, by series, in the order of commits."""
    with (folder / POINTS).open("w", newline="", encoding="utf-8") as file:
        file.write(f"{_cells(*COLUMNS)}\r\n")
        file.writelines(_lines(history))


def _lines(history: History) -> Iterator[str]:
    for entry in history.series:
        series = _cells(entry.machine, entry.case.id, words.quirks_text(entry))
        for point in entry.points:
            commit, state = _commit(point.commit, point.date_ms, point.tvm), STATES[point.state]
            numbers = _numbers(point.wall_ms, point.low_ms, point.high_ms)
            message = _cells("", point.message) if point.message else ","
            yield f"{series},{commit},{state},{numbers}{message}\r\n"


@functools.lru_cache(1 << 14)
def _commit(commit: str, date_ms: int, tvm: str) -> str:
    """Return the cells of a commit, which come again with every series."""
    return _cells(commit, words.day_text(date_ms), tvm)


def _cells(*texts: str) -> str:
    """Texts as they stand in a line."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(texts)
    return line.getvalue()


def _numbers(wall_ms: float | None, low_ms: float | None, high_ms: float | None) -> str:
    if wall_ms is not None and low_ms is not None and high_ms is not None:  # nearly always: one call for all three
        return f"{wall_ms:.6g},{low_ms:.6g},{high_ms:.6g}"
    return ",".join("" if ms is None else f"{ms:.6g}" for ms in (wall_ms, low_ms, high_ms))


BUCKETS = 100
"""Stretches of equal length, each drawn by its lowest and its highest latency."""
NEWEST = 40
"""Points at the end that are all drawn."""


def thin(points: Sequence[Point], named: Collection[str] = ()) -> list[int]:
    """Return the places of the points to draw, in order; all of them if they are few.

    Kept are both sides of every change of state, the lowest and the highest latency of each of `BUCKETS` stretches (so
    the highest of all, too), the `NEWEST` last points, and the commits that are `named`.
    """
    if len(points) <= 2 * BUCKETS + NEWEST:
        return list(range(len(points)))
    edges = {0, *range(len(points) - NEWEST, len(points))}
    names = (place for place, point in enumerate(points) if point.commit in named)
    return sorted(edges.union(names, _changes(points), _extremes(points)))


def _changes(points: Sequence[Point]) -> Iterator[int]:
    looks = [(point.state, point.wall_ms is None) for point in points]
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
