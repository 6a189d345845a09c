"""How comparisons are shown: a table for people, Markdown for a pull request."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from harness.base.tables import counted, markdown_table, table
from harness.base.terminal import tell
from harness.judge.report.table import milliseconds
from harness.judge.stats.shares import share_interval, signed_share
from harness.judge.verdict import Verdict

if TYPE_CHECKING:
    from harness.judge.compare import Comparison, ComparisonResult, KernelChange
    from harness.judge.decisions import PairedDecision
    from harness.judge.path_ranking import PathFlip, PathMean
    from harness.judge.report.comparison import ComparisonExport
    from harness.judge.sides import Sides
    from harness.judge.stats.controls import Fitness
    from harness.judge.stats.pair import Rules
    from harness.judge.stats.suite import Overall

HEADERS = ("case", "verdict", "confidence", "base ms", "head ms", "change", "interval", "can see")
KERNEL_HEADERS = ("operator", "base ms", "head ms", "change", "source")
MOST_KERNELS = 8
MOST_ROWS = 5_000
UNEVENTFUL = (Verdict.SAME, Verdict.NEW)
NOT_OF_TVM = "the kernels of OpenCL ML are not among them"
SPARE = ("can see", "interval", "confidence", "base ms", "head ms")
"""Columns that a narrow terminal leaves out, the least important first."""


@dataclass(frozen=True)
class ComparisonView:
    """A comparison, and how it is shown."""

    result: ComparisonResult
    rules: Rules
    remark: str = ""
    """What was compared, or why nothing was."""
    answer: str = ""
    """One sentence, where two models or two sets of options were compared."""

    def text(self, *, markdown: bool = False) -> str:
        """Return what `adreno-bench compare` prints: the table, its reasons, and what is undecided."""
        result, (means, flips) = self.result, self._paths
        parts = (
            headline(result.cases) if markdown else "",
            verdict_table(result.cases, markdown=markdown),
            *kernel_tables(result.cases, markdown=markdown),
            summary(result.fitness, means, flips, markdown=markdown),
            self.remark,
            emulated_parts(result),
            needed(result),
            undecided(result, markdown=markdown),
            self.answer,
        )
        return "\n\n".join(filter(None, parts))

    @cached_property
    def export(self) -> ComparisonExport:
        """All of it as frozen values, as `compare --json` prints them; `export.cases` are the cases."""
        from harness.judge.report.comparison import export_comparison

        return export_comparison(self.result, *self._paths)

    @cached_property
    def _paths(self) -> tuple[list[PathMean], list[PathFlip]]:
        from harness.judge.path_ranking import path_flips, path_means

        return path_means(self.result.cases), path_flips(self.result.cases, self.rules)


def judge_sides(base: Sides, head: Sides, rules: Rules, *, gauged: bool = True) -> ComparisonView:
    """Compare two sides as they are; unless `gauged`, unchanged builds are findings, too."""
    from harness.judge.compare import compare_sides
    from harness.judge.confirm import settle

    compared = compare_sides(base, head, rules, gauged=gauged)
    result = settle(compared, rules, lambda _: "what was measured before cannot be measured in turns")
    return ComparisonView(result, rules, _nothing_common(base, head))


def _nothing_common(base: Sides, head: Sides) -> str:
    """Return why nothing could be compared; empty if something could."""
    from harness.judge.sides import of_one_model

    before, now = (sorted({key.identity for key in side}) for side in (base, head))
    if set(before) & set(now):
        return ""
    ran = f"nothing was compared: base ran on {', '.join(before)}, head on {', '.join(now)}"
    return "; ".join(filter(None, (ran, of_one_model(before, now))))


def headline(comparisons: Sequence[Comparison]) -> str:
    """First lines of a pull request's comment, in Markdown: what became worse or right, and how to see it."""
    counts = Counter(comparison.verdict for comparison in comparisons)
    worse = [verdict for verdict in (Verdict.WRONG, Verdict.BROKEN, Verdict.SLOWER) if counts[verdict]]

    def counted(verdicts: Iterable[Verdict]) -> str:
        return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in verdicts if counts[verdict])

    verdicts = [*worse, *([Verdict.FIXED] if counts[Verdict.FIXED] else [])]
    rest = counted(verdict for verdict in Verdict if verdict not in verdicts)
    cases = f"{len(comparisons)} case{'s' * (len(comparisons) != 1)}{f' ({rest})' if rest else ''}"
    summary_text = ", ".join(filter(None, (counted(worse) or "Nothing became worse", counted(verdicts[len(worse) :]))))
    lines = [f"**{summary_text}** in {cases}", ""]
    for verdict in verdicts:
        for comparison in (comparison for comparison in comparisons if comparison.verdict is verdict):
            shipped = " --as-shipped" if comparison.key.as_shipped else ""
            case = comparison.key.case
            lines.append(f"* **{verdict.value}** `{case}`: `adreno-bench run --case {case}{shipped}`")
    return "\n".join(lines).rstrip()


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


def summary(
    fitness: Fitness, means: Sequence[PathMean] = (), flips: Sequence[PathFlip] = (), *, markdown: bool = False
) -> str:
    """Return whether the run was fit, geometric means of the paths, and paths that changed places."""
    lines = [f"unfit: {reason}" for reason in fitness.reasons if fitness.fit is False]
    lines += [f"{mean.path} on {mean.identity}: {_overall(mean.overall)}" for mean in means]
    lines += [
        f"{flipped.what} on {flipped.identity}: {flipped.flip.now_faster} is now faster than {flipped.flip.was_faster}"
        for flipped in flips
    ]
    return "\n".join(f"{'* ' if markdown else ''}{line}" for line in lines)


def undecided(result: ComparisonResult, *, markdown: bool = False) -> str:
    """Return the last line: what looks changed and could not be decided; empty if nothing does."""
    named = [
        f"{comparison.key} looks {comparison.suspicion.value}{_by(comparison)}"
        for comparison in result.undecided
        if comparison.suspicion
    ]
    return f"{'* ' if markdown else ''}undecided: {', '.join(named)}" if named else ""


def emulated_parts(result: ComparisonResult) -> str:
    """Return the emulated parts; empty if nothing was emulated."""
    sides = (side for comparison in result.cases for side in (comparison.base, comparison.head) if side)
    emulated = dict.fromkeys(part for side in sides for part in side.emulated)
    return f"not the real thing: {', '.join(emulated)}; these times say nothing about a phone" if emulated else ""


def needed(result: ComparisonResult) -> str:
    """Return what would decide the rest; empty if nothing is open or nothing could be measured in turns."""
    open_still = sum(not case.verdict.tells and (case.looked or case.in_turns > 0) for case in result.cases)
    if not open_still or not result.needed_minutes:
        return ""
    more = max(1, math.ceil(result.needed_minutes))
    of_all = f"{open_still} of {counted(len(result.cases), 'case')} {'is' if open_still == 1 else 'are'} not decided"
    return f"the time was up: {of_all}. Run it again with about {counted(more, 'more minute')} (--minutes)"


def keep_for_history(decisions: Sequence[PairedDecision]) -> None:
    """Keep decisions in turns for `history`."""
    from harness.judge.decisions import keep

    if problem := keep(decisions):
        tell(f"adreno-bench: {problem}")


def _by(comparison: Comparison) -> str:
    moved = comparison.shown_ms("head") / comparison.shown_ms("base") - 1
    return f" ({signed_share(moved)})" if math.isfinite(moved) else ""


def _overall(overall: Overall) -> str:
    interval = f", {overall.low:.3f} to {overall.high:.3f}" if math.isfinite(overall.high) else ""
    left_out = f", left out: {overall.left_out}" if overall.left_out else ""
    return f"geometric mean {overall.ratio:.3f} of base (cases: {overall.series}{interval}{left_out})"


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
