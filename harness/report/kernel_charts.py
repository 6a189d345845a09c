"""What `kernels.js` draws of one series: its operators over commits, and the newest of them below the device's best."""

from __future__ import annotations

from typing import Any

from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape

from harness.history.kernel_times import CaseKernels
from harness.profile.profile import Profile
from harness.report import words
from harness.report.charts import COLOURS, LINES
from harness.report.roofline import points_of, roof_gflop_s

SCRIPT = "kernels.js"
DRAWN = 6
"""Operators that have a line of their own; the rest is one more."""
REST_COLOUR = "#7a7a7a"


def drawings(kernels: CaseKernels) -> dict[str, Any]:
    """What a page is told: whether it has a roofline, and `data` for its script, which nothing in it ends."""
    told = {"times": _times(kernels), "roofline": _roofline(kernels)}
    packed: Markup = htmlsafe_json_dumps(told, separators=(",", ":"), ensure_ascii=False)
    return {"roofline": told["roofline"] is not None, "data": packed}


def _times(kernels: CaseKernels) -> dict[str, Any]:
    """The lines over commits: the operators that take longest at any of them, and all others."""
    times = list(kernels.times_ms.values())
    longest: dict[str, float] = {}
    for one in times:
        for label, ms in one.items():
            longest[label] = max(ms, longest.get(label, 0.0))
    labels = sorted(longest, key=lambda label: -longest[label])[:DRAWN]
    lines = [
        {
            "name": _text(label),
            "ms": [_number(one.get(label)) for one in times],
            "colour": COLOURS[place % len(COLOURS)],
            "dash": LINES[place % len(LINES)],
        }
        for place, label in enumerate(labels)
    ]
    if len(longest) > DRAWN:
        rest = [sum(ms for label, ms in one.items() if label not in labels) for one in times]
        name = f"{len(longest) - DRAWN} others"
        lines.append({"name": name, "ms": [_number(ms) for ms in rest], "colour": REST_COLOUR, "dash": "dot"})
    points = [kernels.point(commit) for commit in kernels.times_ms]
    commits = [
        [_text(one.commit[: words.HASH_LENGTH]), _text(f"{words.commit_text(one)}, {words.date_text(one)}")]
        for one in points
    ]
    return {"commits": commits, "lines": lines}


def _roofline(kernels: CaseKernels) -> dict[str, Any] | None:
    """The newest profile below what its device can do at best; None where that, or what to draw, is not known."""
    point, profile = kernels.newest
    drawn = points_of(profile)
    ridge = _ridge(profile)
    if not drawn or ridge is None:
        return None
    xs = sorted({*(one.intensity for one in drawn), ridge, ridge * 2})
    roof = [(x, roof_gflop_s(profile.peaks, x)) for x in xs]
    return {
        "commit": _text(words.commit_text(point)),
        "roof": [[_number(x), _number(y)] for x, y in roof],
        "points": [
            [_text(one.label), _number(one.intensity), _number(one.gflop_s), _number(one.share)] for one in drawn
        ],
    }


def _ridge(profile: Profile) -> float | None:
    """Operations for each byte from which on arithmetic limits an operator."""
    peaks = profile.peaks
    return peaks.float32_gflop_s / peaks.copy_gb_s if peaks.float32_gflop_s and peaks.copy_gb_s else None


def _text(text: str) -> str:
    return str(escape(text))  # plotly takes some markup in its texts


def _number(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
