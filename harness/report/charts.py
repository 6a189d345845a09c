"""Latency over commits, one chart for each model of a device, drawn by plotly in the reader's browser.

The page holds the points as JSON, thinned where they are many; `charts.js` draws a chart when it comes into view. Both
it and plotly's own script, taken from the installed package and packed, lie beside the page, which works from a folder.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from harness.history.events import CaseState, Event, state_of
from harness.history.measured import AS_SHIPPED
from harness.history.results import History, Point, Series
from harness.report import words
from harness.report.thinning import drawn

PLOTLY, SCRIPT, FILTER = "plotly.js", "charts.js", "filter.js"
LINES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""One for each path of a model, so that they can be told apart without colour."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito, Color Universal Design (2008): told apart by all kinds of colour vision."""
PLOT_PX, ROW_PX = 340, 40
"""Height of the latencies with their axis, and of a series' name and marks below them; `charts.js` has the same."""


@dataclass(frozen=True)
class Chart:
    """All series of one model on one machine."""

    machine: str
    model: str
    series: list[dict[str, Any]]
    """What `charts.js` draws: columns of the points that are drawn, in the order of commits."""

    @property
    def height_px(self) -> int:
        """Its place is kept free until it is drawn, so that nothing moves under the reader's finger."""
        return PLOT_PX + ROW_PX * len(self.series)


def write_scripts(folder: Path, names: Iterable[str]) -> None:
    """Put the scripts of these names, and plotly's, beside the pages; packed, that has two fifths of its length."""
    from plotly.offline import get_plotlyjs

    packed = base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
    (folder / PLOTLY).write_text(_template(PLOTLY).replace("GZIPPED", packed), encoding="utf-8")
    for name in names:
        (folder / name).write_text(_template(name), encoding="utf-8")


def _template(name: str) -> str:
    return (files("harness.report") / "templates" / name).read_text("utf-8")


def charts(history: History, moved: Iterable[Event] = ()) -> list[Chart]:
    """The charts of a history, by machine and model. Both commits of what `moved` are drawn in any case."""
    named: dict[int, set[str]] = {}
    for event in moved:
        named.setdefault(id(event.series), set()).update((event.before.commit, event.after.commit))
    places = {machine: {commit: i for i, commit in enumerate(commits)} for machine, commits in history.commits.items()}
    ordered = sorted(history.series, key=_key)
    return [Chart(*key, _columns(list(series), places[key[0]], named)) for key, series in groupby(ordered, key=_key)]


def data(history: History, found: Iterable[Chart]) -> Markup:
    """All that `charts.js` reads, as JSON in which nothing ends the element that holds it."""
    told = {
        "states": {letter: f"{words.SYMBOLS[state]} {state.value}" for state, letter in LETTERS.items()},
        "commits": {machine: _commits(history, machine) for machine in history.machines},
        "charts": [{"machine": chart.machine, "series": chart.series} for chart in found],
    }
    return htmlsafe_json_dumps(told, separators=(",", ":"), ensure_ascii=False)


def anchor(machine: str, model: str) -> str:
    """What a link to a model's chart ends in."""
    return f"{machine}-{model}"


def _key(series: Series) -> tuple[str, str]:
    return series.machine, series.case.model


def _commits(history: History, machine: str) -> list[tuple[str, str, str]]:
    """Hash, day and TVM of each commit. Points of one commit agree on TVM, if they know it."""
    points: dict[str, Point] = {}
    for one in history.series:
        if one.machine == machine:
            points.update((p.commit, p) for p in one.points if p.tvm or p.commit not in points)
    return [
        (_text(commit[: words.HASH_LENGTH]), words.date_text(points[commit]), _text(points[commit].tvm))
        for commit in history.commits[machine]
    ]


def _columns(
    series: Sequence[Series], places: Mapping[str, int], named: Mapping[int, Collection[str]]
) -> list[dict[str, Any]]:
    kinds = list(dict.fromkeys(_kind(one) for one in series))
    return [_column(one, kinds.index(_kind(one)), places, named.get(id(one), ())) for one in series]


def _column(one: Series, kind: int, places: Mapping[str, int], named: Collection[str]) -> dict[str, Any]:
    points = [one.points[place] for place in drawn(one.points, named)]
    return {
        "name": _text(f"{_kind(one)}, {words.quirks_text(one)}"),
        "dash": LINES[kind % len(LINES)],
        "colour": COLOURS[kind % len(COLOURS)],
        "hollow": one.quirks == AS_SHIPPED,
        "x": [places[point.commit] for point in points],
        "ms": [_number(point.wall_ms) for point in points],
        "low": [_number(point.low_ms) for point in points],
        "high": [_number(point.high_ms) for point in points],
        "states": "".join(LETTERS[state_of(point)] for point in points),
        "told": {place: _text(point.message) for place, point in enumerate(points) if point.message},
    }


LETTERS = {state: "?" if state is CaseState.UNKNOWN else state.value[0] for state in CaseState}
"""`r`, `v`, `w`, `b`, `u`, `?`: how `charts.js` knows a state."""


def _kind(one: Series) -> str:
    case = one.case
    return f"{case.path} {case.precision.value} {case.tuning.value}"


def _text(text: str) -> str:
    return str(escape(text))  # plotly takes some markup in its texts


def _number(ms: float | None) -> float | None:
    """Five significant digits: more than a chart can show."""
    return None if ms is None else float(f"{ms:.5g}")
