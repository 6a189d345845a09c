"""A series in a few pixels: its latencies, and a mark where there is none because the case was wrong or broken."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from harness.history.events import CaseState, state_of
from harness.history.results import Point

WIDTH, HEIGHT, MARGIN = 120, 28, 4
NEWEST = 60
"""Most points that can be told apart at this width."""


def sparkline(points: Sequence[Point]) -> Markup:
    """An inline SVG with a title for those who do not see it. Wrong is a cross, broken a square."""
    points = points[-NEWEST:]
    known = [point.wall_ms for point in points if point.wall_ms is not None]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    step = (WIDTH - 2 * MARGIN) / max(len(points) - 1, 1)
    parts: list[str] = []
    run: list[str] = []
    for index, point in enumerate(points):
        x = MARGIN + index * step
        if point.wall_ms is not None:
            run.append(f"{x:.1f},{_y(point.wall_ms, low, high):.1f}")
            continue
        parts.extend(_line(run))
        run = []
        parts.append(_mark(state_of(point), x))
    parts.extend(_line(run))
    title = f"{len(points)} commits, {low:.4g} to {high:.4g} ms" if known else f"{len(points)} commits, no latency"
    body = f"<title>{title}</title>{''.join(parts)}"
    return Markup(f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{body}</svg>')  # numbers only: safe


def _y(value: float, low: float, high: float) -> float:
    share = (value - low) / (high - low) if high > low else 0.5
    return HEIGHT - MARGIN - share * (HEIGHT - 2 * MARGIN)


def _line(run: Sequence[str]) -> list[str]:
    if len(run) == 1:
        x, y = run[0].split(",")
        return [f'<circle cx="{x}" cy="{y}" r="2"/>']
    return [f'<polyline points="{" ".join(run)}"/>'] if run else []


def _mark(state: CaseState, x: float) -> str:
    y = HEIGHT / 2
    if state is CaseState.WRONG:
        return f'<path d="M{x - 3:.1f} {y - 3} l6 6 m0 -6 l-6 6"/>'
    if state is CaseState.BROKEN:
        return f'<rect x="{x - 3:.1f}" y="{y - 3}" width="6" height="6"/>'
    return f'<circle cx="{x:.1f}" cy="{y}" r="1"/>'
