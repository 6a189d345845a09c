"""How comparisons are shown: a table for people, JSON for programs, Markdown for a pull request."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.compare import Comparison, Side
    from harness.ranking import Flip, Mean

HEADERS = ("case", "verdict", "confidence", "base ms", "head ms", "change", "interval")


def verdict_table(comparisons: Sequence[Comparison], *, markdown: bool = False) -> str:
    """One row for each case, then the reasons of each verdict that has some."""
    from tabulate import tabulate

    style = "github" if markdown else "simple"
    table = tabulate([_row(c) for c in comparisons], headers=HEADERS, tablefmt=style, disable_numparse=True)
    bullet = "* " if markdown else "  "
    reasons = [f"{bullet}{c.key}: {c.verdict.value}: {'; '.join(c.reasons)}" for c in comparisons if c.reasons]
    return "\n".join([table, *([""] if reasons else []), *reasons])


def summary(means: Sequence[Mean], flips: Sequence[Flip], *, markdown: bool = False) -> str:
    """Geometric means of the paths, and paths that changed places."""
    bullet = "* " if markdown else ""
    lines = [f"{m.path}: {m.ratio:.3f} of base (geometric mean, cases: {m.cases}, {m.identity})" for m in means]
    lines += [
        f"{f.what}: {f.is_faster} is now faster than {f.was_faster}{'' if f.certain else ' (within the noise)'}"
        f" on {f.identity}"
        for f in flips
    ]
    return "\n".join(f"{bullet}{line}" for line in lines)


def as_json(comparisons: Sequence[Comparison], means: Sequence[Mean], flips: Sequence[Flip]) -> str:
    """Everything above, for programs. Unknown numbers are null."""
    facts = {
        "cases": [_plain(comparison) for comparison in comparisons],
        "geometric_means": [vars(mean) for mean in means],
        "ranking_flips": [vars(flip) for flip in flips],
    }
    return json.dumps(facts, indent=1, allow_nan=False)


def _row(comparison: Comparison) -> tuple[str, ...]:
    change, sure = comparison.change, comparison.confidence
    interval = f"{change.low:+.1%} to {change.high:+.1%}" if change and math.isfinite(change.low) else "-"
    return (
        str(comparison.key),
        comparison.verdict.value,
        "-" if sure is None else f"{sure:.1%}" if sure < 0.999 else "> 99.9%",
        _ms(comparison.base),
        _ms(comparison.head),
        f"{change.relative:+.1%}" if change and math.isfinite(change.relative) else "-",
        interval,
    )


def _ms(side: Side | None) -> str:
    if side is None:
        return "-"
    return f"{side.location_ms:.4g}" if math.isfinite(side.location_ms) else side.outcome.value


def _plain(comparison: Comparison) -> dict[str, Any]:
    change = comparison.change
    numbers = ("relative", "low", "high", "delta_ms", "p")
    return {
        "case": comparison.key.case,
        "identity": comparison.key.identity,
        "as_shipped": comparison.key.as_shipped,
        "verdict": comparison.verdict.value,
        "confidence": comparison.confidence,
        "reasons": comparison.reasons,
        "base": _plain_side(comparison.base),
        "head": _plain_side(comparison.head),
        **{name: _finite(getattr(change, name)) if change else None for name in numbers},
        "sessions": change.sessions if change else None,
    }


def _plain_side(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    return {
        "outcome": side.outcome.value,
        "message": side.message,
        "wall_ms": _finite(side.location_ms),
        "artifact": side.artifact,
        "quirks": side.quirks,
        "tvm": side.tvm,
        "emulated": side.emulated,
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
