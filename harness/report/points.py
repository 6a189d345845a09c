"""Every point of a history in one file of comma-separated values, for whoever wants more than the charts draw."""

from __future__ import annotations

import csv
import functools
import io
from collections.abc import Iterator
from pathlib import Path

from harness.history.events import CaseState, state_of
from harness.history.results import History
from harness.report import words

POINTS = "points.csv"
COLUMNS = ("machine", "case", "quirks", "commit", "day", "tvm", "state", "wall_ms", "low_ms", "high_ms", "message")

STATES = {state: state.value for state in CaseState}


def write_points(history: History, folder: Path) -> None:
    """Write `POINTS` in the folder: a line of names, and a line for each point, by series, in the order of commits."""
    with (folder / POINTS).open("w", newline="", encoding="utf-8") as file:
        file.write(f"{_cells(*COLUMNS)}\r\n")
        file.writelines(_lines(history))


def _lines(history: History) -> Iterator[str]:
    for one in history.series:
        series = _cells(one.machine, one.case.id, words.quirks_text(one))
        for point in one.points:
            commit, state = _commit(point.commit, point.date_ms, point.tvm), STATES[state_of(point)]
            numbers = _numbers(point.wall_ms, point.low_ms, point.high_ms)
            message = _cells("", point.message) if point.message else ","
            yield f"{series},{commit},{state},{numbers}{message}\r\n"


@functools.lru_cache(1 << 14)
def _commit(commit: str, date_ms: int, tvm: str) -> str:
    """The cells of a commit, which come again with every series."""
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
