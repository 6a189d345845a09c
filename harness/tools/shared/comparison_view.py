"""How the tools show a comparison: a table for people, Markdown for a pull request, and values for programs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.base.tables import counted
from harness.judge.compare import Comparison, ComparisonResult
from harness.judge.confirm import judge_sides
from harness.judge.path_ranking import PathFlip, PathMean, path_flips, path_means
from harness.judge.report import verdicts
from harness.judge.report.comparison import ComparisonExport, export_comparison
from harness.judge.sides import Sides, of_one_model
from harness.judge.stats.pair import Rules
from harness.judge.stats.suite import Overall
from harness.judge.verdict import Verdict


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
        result = self.result
        parts = (
            headline(result.cases) if markdown else "",
            verdicts.verdict_table(result.cases, markdown=markdown),
            *verdicts.kernel_tables(result.cases, markdown=markdown),
            "\n".join(filter(None, (verdicts.unfit(result.fitness, markdown=markdown), *self._paths_text(markdown)))),
            self.remark,
            _emulated_parts(result),
            verdicts.needed(result),
            verdicts.undecided(result, markdown=markdown),
            self.answer,
        )
        return "\n\n".join(filter(None, parts))

    @cached_property
    def export(self) -> ComparisonExport:
        """All of it as frozen values, as `compare --json` prints them; `export.cases` are the cases."""
        return export_comparison(self.result, *self._paths)

    @cached_property
    def _paths(self) -> tuple[list[PathMean], list[PathFlip]]:
        return path_means(self.result.cases), path_flips(self.result.cases, self.rules)

    def _paths_text(self, markdown: bool) -> list[str]:
        """Return the geometric means of the paths, and paths that changed places."""
        means, flips = self._paths
        lines = [f"{mean.path} on {mean.identity}: {_overall(mean.overall)}" for mean in means]
        lines += [
            f"{each.what} on {each.identity}: {each.flip.now_faster} is now faster than {each.flip.was_faster}"
            for each in flips
        ]
        return [f"{'* ' if markdown else ''}{line}" for line in lines]


def view_sides(base: Sides, head: Sides, rules: Rules, *, gauged: bool = True) -> ComparisonView:
    """Compare two sides as they are (`judge_sides`)."""
    return ComparisonView(judge_sides(base, head, rules, gauged=gauged), rules, _nothing_common(base, head))


def _nothing_common(base: Sides, head: Sides) -> str:
    """Return why nothing could be compared; empty if something could."""
    before, now = (sorted({key.identity for key in side}) for side in (base, head))
    if set(before) & set(now):
        return ""
    ran = f"nothing was compared: base ran on {', '.join(before)}, head on {', '.join(now)}"
    return "; ".join(filter(None, (ran, of_one_model(before, now))))


def headline(comparisons: Sequence[Comparison]) -> str:
    """First lines of a pull request's comment, in Markdown: what became worse or right, and how to see it."""
    counts = Counter(comparison.verdict for comparison in comparisons)
    worse = [verdict for verdict in (Verdict.WRONG, Verdict.BROKEN, Verdict.SLOWER) if counts[verdict]]

    def count_each(verdicts: Iterable[Verdict]) -> str:
        return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in verdicts if counts[verdict])

    verdicts = [*worse, *([Verdict.FIXED] if counts[Verdict.FIXED] else [])]
    rest = count_each(verdict for verdict in Verdict if verdict not in verdicts)
    cases = f"{counted(len(comparisons), 'case')}{f' ({rest})' if rest else ''}"
    parts = (count_each(worse) or "Nothing became worse", count_each(verdicts[len(worse) :]))
    lines = [f"**{', '.join(filter(None, parts))}** in {cases}", ""]
    for verdict in verdicts:
        for comparison in (comparison for comparison in comparisons if comparison.verdict is verdict):
            shipped = " --as-shipped" if comparison.key.as_shipped else ""
            case = comparison.key.case
            lines.append(f"* **{verdict.value}** `{case}`: `adreno-bench run --case {case}{shipped}`")
    return "\n".join(lines).rstrip()


def _emulated_parts(result: ComparisonResult) -> str:
    """Return the emulated parts; empty if nothing was emulated."""
    sides = (side for comparison in result.cases for side in (comparison.base, comparison.head) if side)
    emulated = dict.fromkeys(part for side in sides for part in side.emulated)
    return f"not the real thing: {', '.join(emulated)}; these times say nothing about a phone" if emulated else ""


def _overall(overall: Overall) -> str:
    interval = f", {overall.low:.3f} to {overall.high:.3f}" if math.isfinite(overall.high) else ""
    left_out = f", left out: {overall.left_out}" if overall.left_out else ""
    return f"geometric mean {overall.ratio:.3f} of base (cases: {overall.series}{interval}{left_out})"
