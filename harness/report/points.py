"""Every point of a history in one file of comma-separated values, for whoever wants more than the charts draw."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from harness.history.events import state_of
from harness.history.results import History
from harness.report import words

POINTS = "points.csv"
COLUMNS = ("machine", "case", "quirks", "commit", "day", "tvm", "state", "wall_ms", "low_ms", "high_ms", "message")


def write_points(history: History, folder: Path) -> None:
    """Write `POINTS` in the folder: a line of names, and a line for each point, by series, in the order of commits."""
    with (folder / POINTS).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(_rows(history))


def _rows(history: History) -> Iterator[tuple[str, ...]]:
    for one in history.series:
        of_series = one.machine, one.case.id, words.quirks_text(one)
        for point in one.points:
            numbers = (_number(ms) for ms in (point.wall_ms, point.low_ms, point.high_ms))
            told = point.commit, words.date_text(point), point.tvm, state_of(point).value, *numbers, point.message
            yield (*of_series, *told)


def _number(ms: float | None) -> str:
    return "" if ms is None else f"{ms:.6g}"
