"""Sustained runs drawn over time: latency, and below it what the phone said of its heat.

One drawing serves both: a page holds it as SVG below the figures, and needs no script and no server; an image is the
same for where pages cannot go.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from device_runner.failures import SetupMissing
from device_runner.files import write_whole
from harness.failures import UsageError
from harness.probes.sustained import Bin, Sustained

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from harness.run.record import Record

MOST_DRAWN = 20
"""On one page: a drawing is about 100 kB."""
LATENCY, HIGH, CLOCK, GPU, BATTERY, SLOWED = "#0072b2", "#56b4e9", "#009e73", "#d55e00", "#cc79a7", "#e69f00"
"""Okabe and Ito, Color Universal Design (2008). No two lines of a panel are told apart by colour alone."""
INCHES = (9.0, 6.6)
DPI = 100


def draw(records: Sequence[Record], file: Path) -> None:
    """Write a page (`.html`) of sustained runs, or one of them as an image (`.png`).

    Raises UsageError for what cannot be drawn or another kind of file, SetupMissing without matplotlib.
    """
    drawable = [record for record in records if record.sustained and record.sustained.bins]
    if file.suffix not in (".html", ".png"):
        raise UsageError(f"{file} is neither a page nor an image", hint="name it .html or .png")
    if not drawable:
        raise UsageError("nothing was measured in these sustained runs", hint="`show --sustained` says why")
    if file.suffix == ".png" and len(drawable) > 1:
        raise UsageError(f"an image shows one sustained run, not {len(drawable)}", hint="name its case, or use .html")
    if len(drawable) > MOST_DRAWN:
        raise UsageError(f"a page shows at most {MOST_DRAWN} sustained runs", hint="name some of the cases")
    try:
        content = _image(drawable[0], "png") if file.suffix == ".png" else _page(drawable)
    except ImportError as error:
        raise SetupMissing(f"{error.name} is not installed", hint="pip install 'adreno-bench[plots]'") from None
    write_whole(file, content)


def _page(records: Sequence[Record]) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("harness.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    drawn = [(record, Markup(_svg(record))) for record in records]
    return environment.get_template("sustained.html.j2").render(drawn=drawn)


def _svg(record: Record) -> str:
    """The drawing as an element of a page. Its texts are matplotlib's, which escapes them."""
    text = _image(record, "svg").decode()
    return text[text.index("<svg") :]


def _image(record: Record, form: str) -> bytes:
    import matplotlib as mpl

    content = io.BytesIO()
    known = {"svg.fonttype": "none", "svg.hashsalt": f"{record.run} {record.case}", "font.size": 9}
    metadata: dict[str, Any] = {"Date": None} if form == "svg" else {"Software": None}
    with mpl.rc_context(known):
        _figure(record).savefig(content, format=form, dpi=DPI, metadata=metadata)
    return content.getvalue()


def _figure(record: Record) -> Figure:
    from matplotlib.figure import Figure

    assert record.sustained
    sustained, bins = record.sustained, record.sustained.bins
    panels = [_latency, *(panel for panel, names in _PANELS if set(names) & set(sustained.columns))]
    figure = Figure(figsize=INCHES, layout="constrained")
    heights = [2.0, *[1.0] * (len(panels) - 1)]
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
    for panel, axis in zip(panels, axes, strict=True):
        drawn_on = panel(axis, sustained, bins)
        _shade(axis, sustained, bins)
        axis.grid(alpha=0.3)
        axis.margins(x=0)
        lines = [line for each in drawn_on for line in each.get_lines()]
        axis.legend(
            lines,
            [line.get_label() for line in lines],
            loc="lower right" if panel is _latency else "best",
            fontsize=8,
            framealpha=0.8,
        )
    axes[0].set_title(_title(record), loc="left", fontsize=10)
    axes[-1].set_xlabel("seconds since the beginning; shaded: slowed down by heat")
    return figure


def _title(record: Record) -> str:
    emulated = f"\nemulated: {', '.join(record.emulated)}" if record.emulated else ""
    plain = f"{record.case} on {record.identity.gpu or record.device}{emulated}"
    return plain.replace("$", r"\$")  # matplotlib would take it for mathematics


def _latency(axis: Axes, sustained: Sustained, bins: Sequence[Bin]) -> list[Axes]:
    at_s, figures = [one.at_s for one in bins], sustained.figures
    assert figures
    axis.plot(at_s, [one.p90_ms for one in bins], color=HIGH, linewidth=0.8, linestyle=":", label="90 %")
    axis.plot(at_s, [one.wall_ms for one in bins], color=LATENCY, linewidth=1.4, label="median")
    end_s, window_s = sustained.lasted_s, figures.window_s
    first = f"first {figures.first_ms:.4g} ms"
    last = f"last {figures.last_ms:.4g} ms: {figures.ratio:.2f} times the first"
    axis.plot([0, window_s], [figures.first_ms] * 2, "k--", linewidth=1, label=first)
    axis.plot([end_s - window_s, end_s], [figures.last_ms] * 2, "k-.", linewidth=1, label=last)
    axis.set_ylabel("inference, ms")
    axis.set_ylim(bottom=0)
    return [axis]


def _clock(axis: Axes, _: Sustained, bins: Sequence[Bin]) -> list[Axes]:
    _line(axis, bins, [one.clock_mhz for one in bins], CLOCK, "-", "GPU clock")
    axis.set_ylabel("MHz")
    axis.set_ylim(bottom=0)
    levels = [one.power_level for one in bins]
    beside = axis.twinx()
    _line(beside, bins, levels, SLOWED, "--", "power level")
    beside.set_ylabel("level")
    beside.set_ylim(max(level or 0 for level in levels) + 1, -0.5)  # as the clock: down is slower
    return [axis, beside]


def _heat(axis: Axes, _: Sustained, bins: Sequence[Bin]) -> list[Axes]:
    _line(axis, bins, [one.gpu_c for one in bins], GPU, "-", "GPU")
    _line(axis, bins, [one.battery_c for one in bins], BATTERY, "--", "battery")
    axis.set_ylabel("°C")
    return [axis]


def _battery(axis: Axes, _: Sustained, bins: Sequence[Bin]) -> list[Axes]:
    _line(axis, bins, [one.battery_percent for one in bins], BATTERY, "-", "battery")
    axis.set_ylabel("%")
    return [axis]


_PANELS = ((_clock, ("clock_mhz", "power_level")), (_heat, ("gpu_c", "battery_c")), (_battery, ("battery_percent",)))


def _line(axis: Axes, bins: Sequence[Bin], values: Sequence[float | None], colour: str, dash: str, label: str) -> None:
    known = [(one.at_s, value) for one, value in zip(bins, values, strict=True) if value is not None]
    if known:
        at_s, shown = zip(*known, strict=True)
        axis.plot(at_s, shown, color=colour, linestyle=dash, linewidth=1.2, drawstyle="steps-post", label=label)


def _shade(axis: Axes, sustained: Sustained, bins: Sequence[Bin]) -> None:
    """Shade the time in which heat allowed less than the fastest level."""
    ends = [*(one.at_s for one in bins[1:]), sustained.lasted_s]
    for slowed, group in groupby(zip(bins, ends, strict=True), key=lambda pair: bool(pair[0].power_level)):
        stretch = list(group)
        if slowed:
            axis.axvspan(stretch[0][0].at_s, stretch[-1][1], color=SLOWED, alpha=0.18, linewidth=0)
