"""What `sustained --plot FILE.html` writes: a page of sustained runs that stands alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from harness.base.failures import UsageError
from harness.judge.report.figures import COLOURS, QUIET, Figure, Trace, axis_from_zero, number
from harness.judge.report.page import write_page
from harness.measure.records.record import Record
from harness.tools.shared.outputs import require_page
from harness.tools.sustain.part import Bin, Figures, Sustained

MOST_RUNS = 20
"""Most runs on one page, which is read from top to bottom."""


def draw(records: Sequence[Record], file: Path) -> None:
    """Write a page of sustained runs. Raises UsageError for what cannot be drawn, SetupMissing without plotly."""
    require_page(file)
    runs = [(record, run, run.figures) for record in records if (run := record.part(Sustained))]
    drawings = [(r, run, figures, figure_of(r.case, run, figures)) for r, run, figures in runs if figures]
    if not drawings:
        raise UsageError("nothing was measured in these sustained runs", hint="`sustained` says why")
    if len(drawings) > MOST_RUNS:
        raise UsageError(f"a page shows at most {MOST_RUNS} sustained runs", hint="name some of the cases")
    write_page(file, "sustained.html.j2", package=__package__, title="Sustained runs", runs=drawings)


def figure_of(case: str, run: Sustained, figures: Figures) -> Figure:
    """Draw latency over time, and below it what the phone said of its heat; shaded where heat slowed it down."""
    bins, end_s = run.bins, run.lasted_s
    at_s = [part.at_s for part in bins]
    first, last = [0, figures.window_s], [end_s - figures.window_s, end_s]
    traces = [
        _line("median", at_s, [part.wall_ms for part in bins], COLOURS[0], "solid", "y"),
        _line("90 %", at_s, [part.p90_ms for part in bins], COLOURS[5], "dot", "y"),
        _line(f"first {figures.first_ms:.4g} ms", first, [figures.first_ms] * 2, QUIET, "dash", "y"),
        _line(
            f"last {figures.last_ms:.4g} ms: {figures.ratio:.2f} times the first",
            last,
            [figures.last_ms] * 2,
            QUIET,
            "dashdot",
            "y",
        ),
    ]
    panels: dict[str, Trace] = {"inference, ms": {}}
    for unit, (rest, lines) in _PANELS.items():
        for column, name, place, dash in lines:
            if column in run.columns:
                panels[unit] = rest
                values = [getattr(part, column) for part in bins]
                traces.append(_line(name, at_s, values, COLOURS[place], dash, f"y{len(panels)}", shape="hv"))
    share = 1 / (len(panels) + 1)  # the first has two
    layout: dict[str, Any] = {}
    for place, (unit, rest) in enumerate(panels.items()):
        top, bottom = 1 - share * (place + 1 if place else 0), max(0, 1 - share * (place + 2) + 0.03)
        layout[f"yaxis{place + 1 if place else ''}"] = {"domain": [bottom, top], **axis_from_zero(unit), **rest}
    layout["xaxis"] = {"title": {"text": "seconds since the beginning"}, "anchor": f"y{len(panels)}"}
    layout |= {"legend": {"orientation": "h", "y": -0.12}, "hovermode": "x", "shapes": list(_slowed(bins, end_s))}
    return Figure(f"sustained run of {case}", 200 + 130 * len(panels), traces, layout)


_PANELS: dict[str, tuple[Trace, tuple[tuple[str, str, int, str], ...]]] = {
    "clock, MHz": ({}, (("clock_mhz", "GPU clock", 2, "solid"),)),
    "power level": (
        {"autorange": "reversed", "rangemode": "normal", "dtick": 1, "zeroline": False},  # as the clock: down is slower
        (("power_level", "fastest level that heat allows", 4, "dash"),),
    ),
    "°C": ({"rangemode": "normal"}, (("gpu_c", "GPU, °C", 1, "solid"), ("battery_c", "battery, °C", 3, "dash"))),
    "battery, %": ({}, (("battery_percent", "battery, %", 3, "solid"),)),
}
"""What a phone may say, by panel: its axis, and of each line the column of a sustained run, name, colour and dash."""


def _line(
    name: str, x: Sequence[float], y: Sequence[float | None], colour: str, dash: str, axis: str, shape: str = "linear"
) -> Trace:
    line = {"color": colour, "dash": dash, "width": 1.5, "shape": shape}
    return {
        "name": name,
        "x": list(x),
        "y": [number(value) for value in y],
        "mode": "lines",
        "line": line,
        "yaxis": axis,
    }


def _slowed(bins: Sequence[Bin], end_s: float) -> Iterable[Trace]:
    """Yield the times in which heat allowed less than the fastest level."""
    ends = [*(part.at_s for part in bins[1:]), end_s]
    for slowed, group in groupby(zip(bins, ends, strict=True), key=lambda pair: bool(pair[0].power_level)):
        stretch = list(group)
        if slowed:
            at = {"x0": stretch[0][0].at_s, "x1": stretch[-1][1], "y0": 0, "y1": 1, "yref": "paper"}
            yield {"type": "rect", **at, "fillcolor": COLOURS[4], "opacity": 0.18, "line": {"width": 0}}
