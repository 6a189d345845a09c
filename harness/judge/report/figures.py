"""All drawings: from what was measured to figures of plotly, which `figures.js` draws in the reader's browser.

A figure has numbers and a few names; texts of others are escaped, since plotly takes markup. Figures of the same
machine on one page share the names of its commits (`commit_names`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import escape

from harness.base.outcome import CaseState
from harness.base.request import AS_SHIPPED
from harness.judge.history.results import History, Point, Series
from harness.judge.report import words
from harness.judge.report.points import thin

Trace = dict[str, Any]

LINES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito, Color Universal Design (2008): told apart by all kinds of colour vision. No two lines of a figure are
told apart by colour alone."""
QUIET, LOUD = "#7a7a7a", "#c8322d"
MARKS = {
    CaseState.RIGHT: ("circle", QUIET),
    CaseState.VACUOUS: ("diamond-open", QUIET),
    CaseState.WRONG: ("x", LOUD),
    CaseState.BROKEN: ("square", LOUD),
    CaseState.UNSUPPORTED: ("circle-open", QUIET),
    CaseState.UNKNOWN: ("diamond", QUIET),
}
"""Shape and colour of each state; what is bad is drawn last, above its neighbours."""
PLOT_PX, ROW_PX = 260, 40
"""Height of the latencies with their axis, and of a series' name and marks below them."""
MARGIN_PX = {"l": 56, "r": 40, "t": 26, "b": 6}
TICKS_PX = 52
UNTIMED_PX = MARGIN_PX["t"] + MARGIN_PX["b"] + TICKS_PX + 1
"""The same as `PLOT_PX` where no series has a latency: the axis of commits alone."""
DENSE = 150
"""Commits from which on a line stands for neighbouring points: their dots would hide each other."""


@dataclass(frozen=True)
class Figure:
    """What plotly.js draws, and what a page has to know of it."""

    title: str
    """Title for screen readers."""
    height_px: int
    """Kept free until it is drawn, so that nothing moves under the reader's finger."""
    data: list[Trace]
    layout: dict[str, Any]


# Latencies over commits


def latencies(series: Sequence[Series], commits: Sequence[str], named: Mapping[int, Collection[str]]) -> Figure:
    """Series of one machine over its commits, and below them a row for each with its name and a mark for each commit.

    `named` has, by the identity of a series, commits that are drawn in any case.
    """
    places = {commit: place for place, commit in enumerate(commits)}
    kinds = list(dict.fromkeys(words.kind_text(entry.case) for entry in series))
    looks = list(dict.fromkeys((words.kind_text(entry.case), entry.quirks) for entry in series))
    looks.sort(key=lambda look: look[1] == AS_SHIPPED)  # whose thin lines have the colours that show in the dark, too
    traces, names, samples = [], [], []
    for row, entry in enumerate(series):
        kind = kinds.index(words.kind_text(entry.case))
        hollow = entry.quirks == AS_SHIPPED
        colour = COLOURS[looks.index((words.kind_text(entry.case), entry.quirks)) % len(COLOURS)]
        line = {"dash": LINES[kind % len(LINES)], "color": colour, "width": 1 if hollow else 2}
        points = [entry.points[place] for place in thin(entry.points, named.get(id(entry), ()))]
        x = [places[point.commit] for point in points]
        dense = len(commits) > DENSE
        traces += _latency(points, x, dense, line, "circle-open" if hollow else "circle", str(row))
        traces += _states(points, x, dense, row + 0.72)
        names.append(_row_name(f"{words.kind_text(entry.case)}, {words.quirks_text(entry)}", row))
        samples.append(_row_sample(line, row))
    timed = any(point.wall_ms is not None for entry in series for point in entry.points)
    height = (PLOT_PX if timed else UNTIMED_PX) + ROW_PX * len(series)
    inner = height - MARGIN_PX["t"] - MARGIN_PX["b"]
    rows = ROW_PX * len(series) / inner
    count = len(commits)
    axis = {"type": "category", "range": [-0.02 * count - 0.3, 1.02 * count - 0.7], "anchor": "y", "ticks": "outside"}
    layout = {
        "meta": {"commits": series[0].machine},
        "margin": MARGIN_PX,
        "showlegend": False,
        "annotations": names,
        "shapes": samples,
        "xaxis": {**axis, "tickangle": 0, "zeroline": False},
        "yaxis": {"domain": [rows + TICKS_PX / inner, 1], **axis_from_zero("latency, ms"), "visible": timed},
        "yaxis2": {"range": [len(series), 0], "domain": [0, rows], "visible": False, "fixedrange": True},
    }
    return Figure(
        f"latency of {series[0].case.model} on {series[0].case.path} over {count} commits", height, traces, layout
    )


def commit_names(history: History) -> dict[str, list[tuple[str, str]]]:
    """Name each machine's commits, in order: a label for the axis, and the details.

    A reader knows a commit by the release of TVM that was measured there if each has another one, else by its day.
    """
    names = {}
    for machine, commits in history.commits.items():
        points: dict[str, Point] = {}
        for series in (series for series in history.series if series.machine == machine):
            points.update((p.commit, p) for p in series.points if p.tvm or p.commit not in points)
        releases = len({point.tvm for point in points.values()}) == len(commits)
        names[machine] = [_commit_name(points[commit], by_release=releases) for commit in commits]
    return names


def _commit_name(point: Point, *, by_release: bool) -> tuple[str, str]:
    tvm, day, short = plain_text(point.tvm), words.date_text(point), plain_text(point.commit[: words.HASH_LENGTH])
    if words.is_release(point):
        return f"TVM {tvm}", day
    return (f"{tvm}<br>{short}", day) if by_release else (f"{day}<br>{short}", tvm and f"TVM {tvm}")


def _latency(points: Sequence[Point], x: list[int], dense: bool, line: Trace, symbol: str, group: str) -> list[Trace]:
    """Return the line of a series with its confidence intervals, and its dots."""
    ms = [number(point.wall_ms) for point in points]
    shared = {"legendgroup": group, "hovertemplate": "%{x}<br>%{customdata}<br>%{y} ms<extra></extra>"}
    traces = [{"x": x, "y": ms, "mode": "lines", "line": line, "error_y": _intervals(points, line["color"])}]
    if dots := _dots(ms, dense):
        size = 4 if dense else 9
        traces.append(_marks([x[i] for i in dots], [ms[i] for i in dots], (symbol, line["color"]), size))
    return [{**trace, **shared} for trace in traces]


def _states(points: Sequence[Point], x: list[int], dense: bool, row: float) -> list[Trace]:
    """Return the marks of a series. Where points are many, a line stands for those that were right."""
    states = [point.state for point in points]
    right = [row if state is CaseState.RIGHT else None for state in states]
    line = {"x": x, "y": right, "mode": "lines", "line": {"color": QUIET, "width": 3}, "hoverinfo": "skip"}
    traces = [{**line, "yaxis": "y2"}] if dense else []
    for state, mark in MARKS.items():
        places = [place for place, other in enumerate(states) if other is state]
        if state is CaseState.RIGHT:
            places = _dots(right, dense)
        if places:
            why = [plain_text(points[place].message) for place in places]
            hover = f"%{{x}}<br>%{{customdata}}<br>{words.SYMBOLS[state]} {state.value}"
            text = {"text": why, "hovertemplate": f"{hover}<br>%{{text}}<extra></extra>"}
            rest = text if any(why) else {"hovertemplate": f"{hover}<extra></extra>"}
            marks = _marks([x[i] for i in places], [row] * len(places), mark, 10)
            traces.append({**marks, "yaxis": "y2", **rest})
    return traces


def _dots(values: Sequence[float | None], dense: bool) -> list[int]:
    """Return the places that have a dot: all with a value or, where points are many, those without a neighbour."""
    filled = {place for place, value in enumerate(values) if value is not None}
    return sorted(place for place in filled if not (dense and {place - 1, place + 1} & filled))


def _marks(x: Sequence[int], y: Sequence[float | None], mark: tuple[str, str], size: int) -> Trace:
    """Return marks of a shape and a colour."""
    return {"x": x, "y": y, "mode": "markers", "marker": {"symbol": mark[0], "color": mark[1], "size": size}}


def _intervals(points: Sequence[Point], colour: str, thickness: float = 1) -> Trace:
    """Return asv's confidence intervals for plotly: how far each bound lies above or below."""
    bounds = [
        (p.high_ms - p.wall_ms, p.wall_ms - p.low_ms)
        if p.wall_ms is not None and p.low_ms is not None and p.high_ms is not None
        else (None, None)
        for p in points
    ]
    above, below = ([number(pair[side]) for pair in bounds] for side in (0, 1))
    bounded = any(value is not None for value in above)
    return {
        "type": "data",
        "symmetric": False,
        "array": above if bounded else [],
        "arrayminus": below if bounded else [],
        "width": 0,
        "thickness": thickness,
        "color": colour,
    }


def _row_name(name: str, row: int) -> Trace:
    """Label a row. A click on the label hides the line of its series."""
    at = {"x": 0, "xref": "paper", "xanchor": "left", "xshift": 32 - MARGIN_PX["l"]}
    at |= {"y": row + 0.3, "yref": "y2", "yanchor": "middle"}
    return {**at, "text": plain_text(name), "showarrow": False, "captureevents": True, "font": {"size": 11}}


def _row_sample(line: Trace, row: int) -> Trace:
    """Draw a piece of the series' line before its name."""
    at = {"xref": "paper", "xsizemode": "pixel", "xanchor": 0, "x0": 4 - MARGIN_PX["l"], "x1": 32 - MARGIN_PX["l"]}
    return {"type": "line", **at, "yref": "y2", "y0": row + 0.3, "y1": row + 0.3, "line": line}


def axis_from_zero(label: str) -> Trace:
    """Return an axis from zero, with its unit."""
    return {"rangemode": "tozero", "title": {"text": label, "standoff": 4}, "fixedrange": True}


def plain_text(text: str) -> str:
    """Escape a text of others, since plotly takes markup."""
    return str(escape(text))


def number(value: float | None) -> float | None:
    """Round to five significant digits: more than a figure can show."""
    return None if value is None else float(f"{value:.5g}")
