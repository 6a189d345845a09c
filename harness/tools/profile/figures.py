"""Figures of kernels: their times over the commits of a history, and rooflines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.base.failures import UsageError
from harness.base.tables import counted
from harness.judge.report import words
from harness.judge.report.figures import COLOURS, LINES, QUIET, Figure, Trace, axis_from_zero, number, plain_text
from harness.judge.report.page import write_page
from harness.tools.profile.kernel_times import CaseKernels
from harness.tools.profile.labels import Key, label_sides, mark_px
from harness.tools.profile.roofline import RooflinePoint, points_of
from harness.tools.shared.kernels.profile import Profile
from harness.tools.shared.outputs import require_page

OPERATORS = 6
"""Number of operators with a line of their own; the others share one."""


def plot_roofline(profiles: Sequence[Profile], file: Path) -> None:
    """Write a page of one or two profiles. Raises UsageError for what cannot be drawn, SetupMissing without plotly."""
    require_page(file)
    figure = roofline(profiles)
    if figure is None:
        raise UsageError("there is nothing to draw", hint="the amount of work is unknown for every operator")
    write_page(file, "roofline.html.j2", package=__package__, title="Roofline", profiles=profiles, roofline=figure)


def kernel_times(kernels: CaseKernels) -> Figure:
    """Return the operators that take longest at any commit, and all others as one, over the commits."""
    times = list(kernels.times_ms.values())
    longest: dict[str, float] = {}
    for by_label in times:
        for label, ms in by_label.items():
            longest[label] = max(ms, longest.get(label, 0.0))
    labels = sorted(longest, key=lambda label: -longest[label])[:OPERATORS]
    columns = [
        (label, [times_of.get(label) for times_of in times], COLOURS[place]) for place, label in enumerate(labels)
    ]
    if len(longest) > OPERATORS:
        rest = [sum(ms for label, ms in by_label.items() if label not in labels) for by_label in times]
        columns.append((f"{counted(len(longest) - OPERATORS, 'other')}", list(rest), QUIET))
    points = [kernels.point(commit) for commit in kernels.times_ms]
    x = [plain_text(point.tvm if words.is_release(point) else point.commit[: words.HASH_LENGTH]) for point in points]
    commits = [plain_text(f"{words.commit_text(point)}, {words.date_text(point)}") for point in points]
    traces = [
        {
            "name": plain_text(name),
            "x": x,
            "y": [number(ms) for ms in column],
            "customdata": commits,
            "mode": "lines+markers",
            "line": {"color": colour, "dash": LINES[place % len(LINES)]},
            "hovertemplate": f"{plain_text(name)}<br>%{{customdata}}<br>%{{y}} ms<extra></extra>",
        }
        for place, (name, column, colour) in enumerate(columns)
    ]
    layout = {
        "legend": {"orientation": "h", "y": -0.15},
        "xaxis": {"type": "category", "tickangle": 0, "zeroline": False},
        "yaxis": axis_from_zero("time of an inference, ms"),
    }
    return Figure(f"time of each operator over {len(points)} commits", 400, traces, layout)


def roofline(profiles: Sequence[Profile]) -> Figure | None:
    """Plot each operator's rate over its intensity below the device's peaks; None if nothing can be drawn.

    The model: Williams, Waterman and Patterson, Roofline (CACM 52(4), 2009). Operations and bytes are those that an
    operator needs, so a point is where a perfect kernel of it would lie, moved down by what its kernels waste.
    """
    points = {profile.case: points_of(profile) for profile in profiles}
    intensities = [point.intensity for of_case in points.values() for point in of_case]
    if not intensities:
        return None
    traces = [
        {
            "name": f"at best: {_rate(roof.gb_s)} GB/s, {_rate(roof.gflop_s)} GFLOP/s in {roof.arithmetic}",
            "x": [number(x) for x, _ in line],
            "y": [number(y) for _, y in line],
            "mode": "lines",
            "line": {"color": QUIET, "width": 2},
            "hoverinfo": "skip",
        }
        for roof in dict.fromkeys(profile.roof for profile in profiles)
        if (line := roof.line(min(intensities), max(intensities)))
    ]
    looks = ((COLOURS[0], "circle"), (COLOURS[1], "triangle-up"))
    sides = label_sides(points)
    traces += [_operators(*of_case, *look, sides) for look, of_case in zip(looks, points.items(), strict=False)]
    layout = {
        "legend": {"orientation": "h", "y": -0.2},
        "xaxis": {"type": "log", "title": {"text": "operations for each byte, as needed"}},
        "yaxis": {"type": "log", "title": {"text": "GFLOP/s, as needed"}, "fixedrange": True},
    }
    return Figure(f"roofline of {' and '.join(points)}", 480, traces, layout)


def _operators(case: str, points: Sequence[RooflinePoint], colour: str, symbol: str, sides: Mapping[Key, str]) -> Trace:
    labels = [plain_text(point.label) for point in points]
    shares = [f"{label}<br>{100 * point.share:.1f} % of the time" for label, point in zip(labels, points, strict=True)]
    return {
        "name": plain_text(case),
        "x": [number(point.intensity) for point in points],
        "y": [number(point.gflop_s) for point in points],
        "text": [label if (case, place) in sides else "" for place, label in enumerate(labels)],
        "customdata": shares,
        "mode": "markers+text",
        "textposition": [sides.get((case, place), "top center") for place in range(len(points))],
        "textfont": {"size": 10},
        "cliponaxis": False,
        "marker": {
            "color": colour,
            "symbol": symbol,
            "opacity": 0.6,
            "size": [number(mark_px(point)) for point in points],
        },
        "hovertemplate": "%{customdata}<br>%{y} GFLOP/s<extra></extra>",
    }


def _rate(value: float | None) -> str:
    return f"{value:,.0f}" if value and value >= 1000 else f"{value:.3g}"
