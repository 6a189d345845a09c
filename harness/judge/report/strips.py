"""Drawings as small as a line of text: samples, intervals and a series of latencies, as SVG that needs no script.

A hundred cases have two hundred of them, so each is a few hundred bytes and is there with the page. Charts with axes to
look into are `harness.judge.report.figures`. Shapes take their colours from `style.css`, and texts stand beside them as
HTML, so that they keep their size when a strip is stretched to its column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median

from markupsafe import Markup

from harness.base.outcome import CaseState
from harness.judge.history.results import Point
from harness.judge.stats.sample_summary import SampleSummary
from harness.judge.stats.shares import share_interval, signed_share

WIDTH = 1000
"""Units from left to right, however wide a strip is drawn."""
LANE, MOST_LANES = 9, 6
"""Height of a session's samples; sessions beyond share lanes."""
BOX = 10
MOST_DOTS = 300
"""Of a session: more cannot be told apart."""
SPARK_POINTS = 60
SPARK_HEIGHT = 30
SPARK_RANGE = 0.1
"""Least height of a sparkline, as a share of its median: what moves less looks flat."""
NORMAL = 1.4826
"""Standard deviation of normal noise for each median absolute deviation."""


def samples_strip(
    sessions: Sequence[Sequence[float]],
    whole: SampleSummary | None,
    name: str,
    scale_ms: tuple[float, float] | None = None,
) -> Markup:
    """Return the samples of each session in a lane of its own, and a box over all: quartiles, median, minimum and p90.

    Args:
        sessions: Samples in ms, the sessions in the order taken.
        whole: Summary of them all; None without any.
        name: What was measured, for those who do not see it.
        scale_ms: Both ends of the strip, if others have them, too; else the lowest and the highest sample.
    """
    if whole is None:
        return Markup()
    lanes_of = [session for session in sessions if session]
    place = _scale(*(scale_ms or (whole.min_ms, whole.max_ms)))
    lanes = min(len(lanes_of), MOST_LANES)
    height = lanes * LANE + BOX + 4
    dots = "".join(
        f"M{place(ms)} {LANE // 2 + LANE * (number % lanes)}h.1"
        for number, session in enumerate(lanes_of)
        for ms in session[:: math.ceil(len(session) / MOST_DOTS)]
    )
    label = (
        f"{whole.count} samples of {name} in {len(lanes_of)} session{'s' * (len(lanes_of) > 1)}: {whole.min_ms:.4g} to "
        f"{whole.max_ms:.4g} ms, half of them between {whole.q1_ms:.4g} and {whole.q3_ms:.4g} ms"
    )
    return svg(f'<path class="dots" d="{dots}"/>{_box(whole, place, lanes * LANE + 2)}', height, label)


def interval_strip(low: float, high: float, middle: float, relevant: float, reach: float, kind: str) -> Markup:
    """Return a change with its interval over the band of changes that do not matter.

    Args:
        low: Lower end of the interval, a fraction of base; NaN if not known.
        high: Its upper end, likewise.
        middle: The change, likewise.
        relevant: Half of the band, likewise.
        reach: The fraction at both ends of the strip. What lies beyond is cut off, and ends in an arrow.
        kind: Class of the mark: the verdict.
    """

    def place(value: float) -> int:
        return round(WIDTH / 2 * (1 + max(-1.0, min(1.0, value / reach))))

    parts = []
    if math.isfinite(relevant):
        left, right = place(-relevant), place(relevant)
        parts.append(f'<rect class="band" x="{left}" y="0" width="{right - left}" height="24"/>')
    parts.append(f'<path class="axis" d="M{WIDTH // 2} 0v24"/>')
    if math.isfinite(low) and math.isfinite(high):
        ends = [f"M{place(low)} 12H{place(high)}"]
        ends += ["M12 6L0 12l12 6"] if low < -reach else []
        ends += [f"M{WIDTH - 12} 6L{WIDTH} 12l-12 6"] if high > reach else []
        parts.append(f'<path class="bar" d="{"".join(ends)}"/>')
    if math.isfinite(middle):
        parts.append(f'<path class="mark" d="M{place(middle)} 12h.1"/>')
    label = f"{signed_share(middle)}, {share_interval(low, high) if math.isfinite(low) else 'no interval'}"
    return svg(
        "".join(parts), 24, label if math.isfinite(middle) else "no change of latency is known", f"forest {kind}"
    )


def sparkline(points: Sequence[Point], label: str) -> Markup:
    """Return the newest latencies of a series over the band of its noise.

    Marks say where it was wrong or broken, and where it was right without a latency.
    """
    points = points[-SPARK_POINTS:]
    ms = [point.wall_ms for point in points]
    low, high, middle = spark_bounds(ms)
    step = WIDTH / max(len(points) - 1, 1)

    def height(value: float) -> float:
        return round(SPARK_HEIGHT * (0.9 - 0.8 * (value - low) / (high - low)), 1)

    parts = []
    noise = noise_ms(ms)
    if noise and middle:
        top = max(0.0, height(middle + 2 * noise))
        bottom = min(float(SPARK_HEIGHT), height(middle - 2 * noise))
        parts.append(f'<rect class="band" x="0" y="{top}" width="{WIDTH}" height="{round(bottom - top, 1)}"/>')
    line, dots, pen = "", "", "M"
    for number, value in enumerate(ms):
        if value is None:
            pen = "M"
            continue
        x, y = round(step * number), height(value)
        alone = (number == 0 or ms[number - 1] is None) and (number + 1 == len(ms) or ms[number + 1] is None)
        dots += f"M{x} {y}h.1" if alone or number + 1 == len(ms) else ""
        line += f"{pen}{x} {y}"
        pen = "L"
    bad, untimed = "", ""
    for number, point in enumerate(points):
        mark, state = f"M{round(step * number)} {SPARK_HEIGHT // 2}h.1", point.state
        bad += mark if state in (CaseState.WRONG, CaseState.BROKEN) else ""
        untimed += mark if point.wall_ms is None and state in (CaseState.RIGHT, CaseState.VACUOUS) else ""
    shapes = {"line": line, "mark": dots, "untimed": untimed, "bad": bad}
    parts += [f'<path class="{kind}" d="{d}"/>' for kind, d in shapes.items() if d]
    return svg("".join(parts), SPARK_HEIGHT, label, "spark")


def spark_bounds(ms: Sequence[float | None]) -> tuple[float, float, float]:
    """Lower and upper end of a sparkline's scale, and its median, in ms."""
    latencies = [value for value in ms if value is not None]
    if not latencies:
        return 0.0, 1.0, 0.0
    middle = median(latencies)
    half = max(max(latencies) - middle, middle - min(latencies), SPARK_RANGE / 2 * middle)
    return middle - half, middle + half, middle


def noise_ms(ms: Sequence[float | None]) -> float | None:
    """Return the standard deviation between neighbouring latencies, in which a step counts little.

    None below four differences.
    """
    latencies = [value for value in ms if value is not None]
    differences = [abs(now - before) for before, now in pairwise(latencies)]
    return NORMAL * median(differences) / math.sqrt(2) if len(differences) >= 4 else None


def _scale(low: float, high: float) -> Callable[[float], int]:
    """Places from left to right, with room for a dot at both ends."""
    span = (high - low) or 1.0
    return lambda value: round(8 + (WIDTH - 16) * (value - low) / span)


def _box(whole: SampleSummary, place: Callable[[float], int], top: int) -> str:
    left, right, middle = place(whole.q1_ms), place(whole.q3_ms), place(whole.median_ms)
    centre = top + BOX // 2
    return (
        f'<path class="bar" d="M{place(whole.min_ms)} {centre}H{place(whole.p90_ms)}"/>'
        f'<rect class="box" x="{left}" y="{top}" width="{max(right - left, 1)}" height="{BOX}"/>'
        f'<path class="middle" d="M{middle} {top - 1}v{BOX + 2}"/>'
    )


def svg(shapes: str, height: int, label: str, kind: str = "strip") -> Markup:
    """Return a drawing of `WIDTH` units, whose shapes are numbers of ours; its label may hold what others wrote."""
    head = Markup('<svg class="{}" viewBox="0 0 {} {}" preserveAspectRatio="none" role="img" aria-label="{}" ').format(
        kind, WIDTH, height, label
    )
    return head + Markup(f'style="height:{height}px">{shapes}</svg>')
