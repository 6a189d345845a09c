"""How comparisons are shown: a table for people, Markdown for a pull request."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from harness.base.tables import counted, markdown_table, table
from harness.judge.report.table import milliseconds
from harness.judge.stats.shares import share_interval, signed_share
from harness.judge.verdict import Verdict

if TYPE_CHECKING:
    from harness.judge.compare import Comparison, ComparisonResult, KernelChange
    from harness.judge.stats.controls import Fitness

HEADERS = ("case", "verdict", "confidence", "base ms", "head ms", "change", "interval", "can see")
KERNEL_HEADERS = ("operator", "base ms", "head ms", "change", "source")
MOST_KERNELS = 8
MOST_ROWS = 5_000
UNEVENTFUL = (Verdict.SAME, Verdict.NEW)
NOT_OF_TVM = "the kernels of OpenCL ML are not among them"
SPARE = ("can see", "interval", "confidence", "base ms", "head ms")
"""Columns that a narrow terminal leaves out, the least important first."""


def verdict_table(comparisons: Sequence[Comparison], *, markdown: bool = False) -> str:
    """Format a row for each case, then the reasons of verdicts; empty without cases.

    Of very many cases, those that are the same, have nothing to be compared with, or are undecided and do not look
    changed, are counted.
    """
    from harness.judge.sides import summarise_sides

    if not comparisons:
        return ""
    uneventful = [c for c in comparisons if _is_uneventful(c)] if len(comparisons) > MOST_ROWS else []
    if uneventful:
        comparisons = [c for c in comparisons if not _is_uneventful(c)]
    summarise_sides(side for c in comparisons for side in (c.base, c.head) if side)
    rows = [_row(c) for c in comparisons]
    drawn = markdown_table(rows, HEADERS) if markdown else table(rows, HEADERS, spare=SPARE)
    bullet = "* " if markdown else "  "
    reasons = [f"{bullet}{c.key}: {c.verdict.value}: {'; '.join(c.all_reasons)}" for c in comparisons if c.all_reasons]
    counts = Counter(c.verdict.value for c in uneventful)
    others = [f"{count} others: {verdict} (--json names them)" for verdict, count in counts.items()]
    return "\n".join([*([drawn] if rows or not others else []), *others, *([""] if reasons else []), *reasons])


def _is_uneventful(comparison: Comparison) -> bool:
    if comparison.verdict is Verdict.INCONCLUSIVE:
        return comparison.change is not None and not comparison.suspicion
    return comparison.verdict in UNEVENTFUL


def kernel_tables(comparisons: Sequence[Comparison], *, markdown: bool = False) -> Iterator[str]:
    """Yield the kernels of each case that has some: what changed most first, then the rest and the sum."""
    for comparison in (comparison for comparison in comparisons if comparison.kernels):
        largest, rest = comparison.kernels[:MOST_KERNELS], comparison.kernels[MOST_KERNELS:]
        rows = [_kernel_row(kernel.operator, [kernel], kernel.source) for kernel in largest]
        rows += [_kernel_row("1 other" if len(rest) == 1 else f"{len(rest)} others", rest)] if rest else []
        rows.append(_kernel_row("all kernels", comparison.kernels))
        if markdown:
            drawn = markdown_table(rows, KERNEL_HEADERS)
        else:
            drawn = table(rows, KERNEL_HEADERS, right=KERNEL_HEADERS[1:4], spare=("source",))
        clml = f"; {NOT_OF_TVM}" if "-clml-" in comparison.key.case else ""
        yield f"kernels of {comparison.key}, one session of each side{clml}:\n\n{drawn}"


def _kernel_row(name: str, kernels: Sequence[KernelChange], source: str = "") -> tuple[str, ...]:
    base, head = (
        [ms for kernel in kernels if (ms := getattr(kernel, f"{side}_ms")) is not None] for side in ("base", "head")
    )
    times = (f"{sum(times_ms):.3f}" if times_ms else "-" for times_ms in (base, head))
    return (name, *times, f"{sum(kernel.change_ms for kernel in kernels):+.3f}", source)


def unfit(fitness: Fitness, *, markdown: bool = False) -> str:
    """Return why the run was not fit to judge latencies by; empty if it was."""
    reasons = fitness.reasons if fitness.fit is False else ()
    return "\n".join(f"{'* ' if markdown else ''}unfit: {reason}" for reason in reasons)


def undecided(result: ComparisonResult, *, markdown: bool = False) -> str:
    """Return the last line: what looks changed and could not be decided; empty if nothing does."""
    named = [
        f"{comparison.key} looks {comparison.suspicion.value}{_by(comparison)}"
        for comparison in result.undecided
        if comparison.suspicion
    ]
    return f"{'* ' if markdown else ''}undecided: {', '.join(named)}" if named else ""


def needed(result: ComparisonResult) -> str:
    """Return what would decide the rest; empty if nothing is open or nothing could be measured in turns."""
    open_still = sum(not case.verdict.tells and (case.looked or case.in_turns > 0) for case in result.cases)
    if not open_still or not result.needed_minutes:
        return ""
    more = max(1, math.ceil(result.needed_minutes))
    of_all = f"{open_still} of {counted(len(result.cases), 'case')} {'is' if open_still == 1 else 'are'} not decided"
    return f"the time was up: {of_all}. Run it again with about {counted(more, 'more minute')} (--minutes)"


def _by(comparison: Comparison) -> str:
    moved = comparison.shown_ms("head") / comparison.shown_ms("base") - 1
    return f" ({signed_share(moved)})" if math.isfinite(moved) else ""


def _row(comparison: Comparison) -> tuple[str, ...]:
    change, sure = comparison.change, comparison.confidence
    interval = share_interval(change.low, change.high) if change and math.isfinite(change.low) else "-"
    return (
        str(comparison.key),
        comparison.verdict.value,
        "-" if sure is None else f"{sure:.1%}" if sure < 0.999 else "> 99.9%",
        _ms(comparison, "base"),
        _ms(comparison, "head"),
        signed_share(change.relative) if change and math.isfinite(change.relative) else "-",
        interval,
        signed_share(change.sees).replace("+", "") if change and math.isfinite(change.sees) else "-",
    )


def _ms(comparison: Comparison, name: Literal["base", "head"]) -> str:
    side, ms = getattr(comparison, name), comparison.shown_ms(name)
    if side is None:
        return "-"
    return milliseconds(ms) if math.isfinite(ms) else side.outcome.value
