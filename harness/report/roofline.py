"""Profiles drawn as a roofline: each operator's rate over its intensity, below what the device can do at best.

The model: Williams, Waterman and Patterson, Roofline (CACM 52(4), 2009). Operations and bytes are those that an
operator needs, so a point is where a perfect kernel of it would lie, moved down by what its kernels waste.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from device_runner.failures import SetupMissing
from device_runner.files import write_whole
from harness.failures import UsageError
from harness.profile.against import by_kind
from harness.profile.profile import Operator, Peaks, Profile

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOOKS = (("#0072b2", "o", -14), ("#d55e00", "^", 10))
"""Of each case: its colour (Okabe and Ito, Color Universal Design, 2008), its mark, and by how many points its labels
stand above their marks."""
NAMED = 2
"""Operators of each case that have their name beside them, those that take longest."""
INCHES, DPI = (9.0, 6.0), 100
AREA_OF_ALL = 1200.0
"""Of a mark, in square points, if one operator took all the time."""


class Point(NamedTuple):
    """One kind of operator."""

    label: str
    intensity: float
    """Operations for each byte."""
    gflop_s: float
    share: float
    """Of the kernels' time."""


def points_of(profile: Profile) -> list[Point]:
    """What can be drawn of a profile: operators with known operations and bytes, the longest first."""
    found = []
    for label, alike in by_kind(profile):
        flops, moved = sum(one.flops or 0 for one in alike), sum(one.bytes or 0 for one in alike)
        ms = sum(one.ms for one in alike)
        if flops and moved and ms:
            found.append(Point(label, flops / moved, flops / ms / 1e6, ms / profile.kernels_ms))
    return found


def roof_gflop_s(peaks: Peaks, intensity: float) -> float | None:
    """The most that the device can do at an intensity in float32; None if its peaks are not known."""
    if not peaks.copy_gb_s or not peaks.float32_gflop_s:
        return None
    return min(peaks.float32_gflop_s, intensity * peaks.copy_gb_s)


class Bound(NamedTuple):
    """How near operators are to the best that their device can do."""

    share: float
    of: str
    """What limits them there: `GB/s` or `GFLOP/s`."""


def bound_of(operators: Sequence[Operator], peaks: Peaks) -> Bound | None:
    """Their rate as a share of the roof above them; None if that or what they need is not known."""
    ms, moved = sum(one.ms for one in operators), [one.bytes for one in operators]
    flops = [one.flops or 0 for one in operators]
    if not ms or not peaks.copy_gb_s or not peaks.float32_gflop_s:
        return None
    known = [count for count in moved if count]
    if len(known) < len(moved):
        return None
    memory, arithmetic = sum(known) / ms / 1e6 / peaks.copy_gb_s, sum(flops) / ms / 1e6 / peaks.float32_gflop_s
    return Bound(memory, "GB/s") if memory > arithmetic else Bound(arithmetic, "GFLOP/s")


def draw(profiles: Sequence[Profile], file: Path) -> None:
    """Write one or two profiles as an image (`.png`). Raises UsageError, SetupMissing without matplotlib."""
    if file.suffix != ".png":
        raise UsageError(f"{file} is no image", hint="name it .png")
    if not any(map(points_of, profiles)):
        raise UsageError("there is nothing to draw", hint="of no operator it is known how much it computes")
    try:
        content = _image(profiles)
    except ImportError as error:
        raise SetupMissing(f"{error.name} is not installed", hint="pip install 'adreno-bench[plots]'") from None
    write_whole(file, content)


def _image(profiles: Sequence[Profile]) -> bytes:
    from matplotlib.figure import Figure

    figure = Figure(figsize=INCHES, layout="constrained")
    axis = figure.subplots()
    axis.set(xscale="log", yscale="log", xlabel="operations for each byte, as needed", ylabel="GFLOP/s, as needed")
    for profile, look in zip(profiles, LOOKS, strict=False):
        _scatter(axis, profile, *look)
    _roof(axis, profiles)
    axis.set_title(f"{profiles[0].gpu}; areas: share of the time".replace("$", r"\$"), loc="left", fontsize=10)
    axis.grid(visible=True, which="major", linewidth=0.3)
    axis.legend(fontsize=8, loc="lower right", markerscale=0.5)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=DPI)
    return out.getvalue()


def _scatter(axis: Axes, profile: Profile, colour: str, mark: str, above: int) -> None:
    points = points_of(profile)
    areas = [max(8.0, AREA_OF_ALL * point.share) for point in points]
    x, y = [point.intensity for point in points], [point.gflop_s for point in points]
    axis.scatter(x, y, s=areas, c=colour, marker=mark, alpha=0.6, label=profile.case)
    for point in points[:NAMED]:
        place, offset = (point.intensity, point.gflop_s), (-4, above)
        axis.annotate(point.label, place, offset, fontsize=7, color=colour, ha="right", textcoords="offset points")


def _roof(axis: Axes, profiles: Sequence[Profile]) -> None:
    peaks = profiles[0].peaks
    if not peaks.copy_gb_s or not peaks.float32_gflop_s:
        return
    left, right = axis.get_xlim()
    ridge = peaks.float32_gflop_s / peaks.copy_gb_s
    xs = sorted({left, min(max(ridge, left), right), max(right, ridge * 2)})
    roof = [roof_gflop_s(peaks, x) or math.nan for x in xs]
    told = f"at best: {peaks.copy_gb_s:.3g} GB/s, {peaks.float32_gflop_s:.3g} GFLOP/s"
    axis.plot(xs, roof, color="black", linewidth=1.2, label=told)
