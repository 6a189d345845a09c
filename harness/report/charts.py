"""Latency over commits, one chart for each model of a device, drawn by plotly in the reader's browser.

The page loads one script, plotly's own, which is copied beside it from the installed package: it works from a folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from harness.history.events import CaseState, state_of
from harness.history.measured import AS_SHIPPED
from harness.history.results import History, Point, Series
from harness.report import words

SCRIPT = "plotly.min.js"
MARKERS = {
    CaseState.RIGHT: "circle",
    CaseState.VACUOUS: "diamond-open",
    CaseState.WRONG: "x",
    CaseState.BROKEN: "square",
    CaseState.UNSUPPORTED: "circle-open",
}
"""Shapes that stand for the symbols of `words`; anything else is a diamond."""
LINES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
"""One for each path of a model, so that they can be told apart without colour."""
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito, Color Universal Design (2008): told apart by all kinds of colour vision."""
ROW_PX, PLOT_PX, MARGIN_PX = 22, 300, 70


@dataclass(frozen=True)
class Chart:
    """All series of one model on one machine."""

    machine: str
    model: str
    figure: Markup


def write_script(folder: Path) -> None:
    """Put plotly's script beside the pages."""
    from plotly.offline import get_plotlyjs

    (folder / SCRIPT).write_text(get_plotlyjs(), encoding="utf-8")


def charts(history: History) -> list[Chart]:
    """The charts of a history, by machine and model."""
    ordered = sorted(history.series, key=_key)
    groups = [(key, list(series)) for key, series in groupby(ordered, key=_key)]
    return [Chart(*key, _html(series, number)) for number, (key, series) in enumerate(groups)]


def anchor(machine: str, model: str) -> str:
    """What a link to a model's chart ends in."""
    return f"{machine}-{model}"


def _key(series: Series) -> tuple[str, str]:
    return series.machine, series.case.model


def _html(series: Sequence[Series], number: int) -> Markup:
    text: str = _figure(series).to_html(
        include_plotlyjs=False,
        full_html=False,
        div_id=f"chart-{number}",
        config={"displayModeBar": False, "responsive": True},
    )
    return Markup(text)  # plotly writes its data as JSON in which `<` and `>` are escaped


def _figure(series: Sequence[Series]) -> Any:
    """Latencies above, and below them a row of marks for each series: what is not right has no latency."""
    import plotly.graph_objects as go

    names = [_name(one) for one in series]
    timed = [(place, one) for place, one in _by_path(series) if any(point.wall_ms for point in one.points)]
    traces = [go.Scatter(**_latencies(one, LINES[i % len(LINES)], COLOURS[i % len(COLOURS)])) for i, one in timed]
    marks = [go.Scatter(**_states(one)) for one in series]
    height = PLOT_PX + ROW_PX * len(series) + MARGIN_PX
    split = ROW_PX * len(series) / (height - MARGIN_PX)
    layout = go.Layout(
        height=height,
        margin={"l": 10, "r": 10, "t": 10, "b": 10},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        legend={"orientation": "h", "y": -0.15},
        xaxis={"type": "category", "automargin": True, "anchor": "y2"},
        yaxis={"title": "ms", "rangemode": "tozero", "domain": [split + 0.05, 1], "automargin": True},
        yaxis2={"domain": [0, split], "categoryarray": list(reversed(names)), "automargin": True, "type": "category"},
    )
    return go.Figure([*traces, *marks], layout)


def _by_path(series: Sequence[Series]) -> Iterable[tuple[int, Series]]:
    """Each series with the number of its path and precision among the model's."""
    kinds = list(dict.fromkeys(_kind(one) for one in series))
    return ((kinds.index(_kind(one)), one) for one in series)


def _kind(one: Series) -> str:
    case = one.case
    return f"{case.path} {case.precision.value} {case.tuning.value}"


def _name(one: Series) -> str:
    return str(escape(f"{_kind(one)}, {words.quirks_text(one)}"))  # plotly takes some markup in its texts


def _latencies(one: Series, dash: str, colour: str) -> dict[str, Any]:
    shipped = one.quirks == AS_SHIPPED
    return {
        "name": _name(one),
        "x": [_commit(point) for point in one.points],
        "y": [point.wall_ms for point in one.points],
        "error_y": {
            "array": [_beyond(point, point.high_ms) for point in one.points],
            "arrayminus": [_beyond(point, point.low_ms) for point in one.points],
        },
        "mode": "lines+markers",
        "line": {"dash": dash, "color": colour},
        "marker": {"symbol": "circle-open" if shipped else "circle", "size": 9},
        "hovertemplate": "%{x}<br>%{y:.4g} ms",
        "connectgaps": False,
    }


def _states(one: Series) -> dict[str, Any]:
    states = [state_of(point) for point in one.points]
    return {
        "name": _name(one),
        "x": [_commit(point) for point in one.points],
        "y": [_name(one)] * len(states),
        "yaxis": "y2",
        "mode": "markers",
        "marker": {"symbol": [MARKERS.get(state, "diamond") for state in states], "size": 10, "color": "#7a7a7a"},
        "text": [str(escape(_told(point))) for point in one.points],
        "hovertemplate": "%{x}<br>%{text}",
        "showlegend": False,
    }


def _commit(point: Point) -> str:
    return str(escape(words.commit_text(point)))


def _told(point: Point) -> str:
    return f"{words.state_text(point)}: {point.message}" if point.message else words.state_text(point)


def _beyond(point: Point, bound_ms: float | None) -> float:
    """How far a bound of the confidence interval lies from the median."""
    return abs(bound_ms - point.wall_ms) if bound_ms is not None and point.wall_ms is not None else 0.0
