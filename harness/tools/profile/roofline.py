"""How near the operators of a profile come to what their device can do: the roofline, and a strip that shows it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from markupsafe import Markup

from harness.judge.report.strips import WIDTH, svg
from harness.tools.profile.groups import by_kind
from harness.tools.shared.kernels.profile import Operator, Profile, Roof

ROOF_HEIGHT = 120


def roofline_strip(points: Sequence[RooflinePoint], roof: Roof, low: float, high: float) -> Markup:
    """Return operators below the roof of their device, both axes logarithmic; nothing if its peaks are not known.

    Args:
        points: Operators; the area of a dot is its share of the kernels' time.
        roof: What the device can do.
        low: Operations for each byte at the left end.
        high: The same at the right end (`roof_bounds`).
    """
    corners = roof.line(low, high)
    if not corners or not points:
        return Markup()
    rates = [*(point.gflop_s for point in points), *(rate for _, rate in corners)]
    across, up = _logarithmic(low, high, WIDTH), _logarithmic(min(rates), max(rates), ROOF_HEIGHT)
    line = "L".join(f"{across(x)} {ROOF_HEIGHT - up(rate)}" for x, rate in corners)
    dots = Markup("").join(
        Markup('<path class="dots" style="stroke-width:{:.0f}px" d="M{} {}h.1"><title>{}</title></path>').format(
            4 + 20 * math.sqrt(point.share),
            across(point.intensity),
            ROOF_HEIGHT - up(point.gflop_s),
            _point_text(point, roof),
        )
        for point in points
    )
    nearest = max(points, key=lambda point: point.share)
    label = f"{len(points)} kinds of operators below the roof of the device; the longest: {_point_text(nearest, roof)}"
    return svg(f'<path class="bar" d="M{line}"/>{dots}', ROOF_HEIGHT, label)


def roof_bounds(points: Sequence[RooflinePoint], roof: Roof) -> tuple[float, float]:
    """Return the least and the most operations for each byte that are drawn."""
    intensities = [point.intensity for point in points] + [x for x, _ in roof.line(math.inf, 0.0)]
    return (min(intensities), max(intensities)) if intensities else (1.0, 1.0)


def _point_text(point: RooflinePoint, roof: Roof) -> str:
    best = roof.at(point.intensity)
    share = f", {point.gflop_s / best:.1%} of the roof" if best else ""
    return f"{point.label}: {point.gflop_s:.3g} GFLOP/s{share}, {point.share:.0%} of the time"


def _logarithmic(low: float, high: float, extent: int) -> Callable[[float], int]:
    """Return what places a number on a logarithmic scale, with room for a dot at both ends."""
    span, room = math.log(high / low) or 1.0, extent // 20
    return lambda value: round(room + (extent - 2 * room) * math.log(value / low) / span)


class RooflinePoint(NamedTuple):
    """One kind of operator below the roof."""

    label: str
    intensity: float
    """Operations for each byte."""
    gflop_s: float
    share: float
    """Share of the kernels' time."""


def points_of(profile: Profile) -> list[RooflinePoint]:
    """Return what can be drawn of a profile: operators with known operations and bytes, the longest first."""
    points = []
    for label, alike in by_kind(profile):
        flops, moved = sum(operator.flops or 0 for operator in alike), sum(operator.bytes or 0 for operator in alike)
        ms = sum(operator.ms for operator in alike)
        if flops and moved and ms and profile.kernels_ms > 0:
            points.append(RooflinePoint(label, flops / moved, flops / ms / 1e6, ms / profile.kernels_ms))
    return points


class Bound(NamedTuple):
    """How near operators are to the best that their device can do."""

    share: float
    of: str
    """What limits them there: `GB/s` or `GFLOP/s`."""


def bound_of(operators: Sequence[Operator], roof: Roof) -> Bound | None:
    """Return the operators' rate as a share of the roof above them; None if either is not known."""
    ms, moved = sum(operator.ms for operator in operators), [operator.bytes for operator in operators]
    flops = [operator.flops or 0 for operator in operators]
    if not ms or not roof.gb_s or not roof.gflop_s:
        return None
    sizes = [count for count in moved if count]
    if len(sizes) < len(moved):
        return None
    memory, arithmetic = sum(sizes) / ms / 1e6 / roof.gb_s, sum(flops) / ms / 1e6 / roof.gflop_s
    return Bound(memory, "GB/s") if memory > arithmetic else Bound(arithmetic, "GFLOP/s")
