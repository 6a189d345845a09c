"""A gate's or a comparison's result for programs: what `--json` prints, and what a report draws as a forest plot.

docs/reference/records.md lists its keys, and docs/reference/export.schema.json is the JSON Schema of all exports
(`python -m benchmarks.export_schema`); it changes with `SCHEMA`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from device_runner.files import write_whole
from harness.base.failures import UsageError, reason_alone
from harness.base.outcome import STATES, CaseState, Outcome
from harness.base.tables import markdown_table
from harness.judge.compare import Comparison, ComparisonResult, KernelChange, exit_code
from harness.judge.path_ranking import PathFlip, PathMean
from harness.judge.report import words
from harness.judge.report.exports import SCHEMA, Export, csv_text, json_text, verdict_of
from harness.judge.sides import Side, summarise_sides
from harness.judge.stats.pair import finite
from harness.judge.verdict import Verdict

if TYPE_CHECKING:
    from markupsafe import Markup

LARGEST_FILE_BYTES = 64 << 20
LEAST_REACH, MOST_REACH = 0.05, 1.0
"""Ends of a forest plot, as fractions of base."""
ORDER = (Verdict.WRONG, Verdict.BROKEN, Verdict.SLOWER, Verdict.INCONCLUSIVE, Verdict.FASTER, Verdict.FIXED)
"""Verdicts in the order of display; others follow."""


class SideExport(Export):
    """One side of a compared case."""

    outcome: Outcome
    message: str
    latency_ms: float | None
    """The latency that the change is computed from; null without one."""
    artifact: str
    quirks: list[str]
    tvm: str
    emulated: list[str]
    vacuous: list[str]

    @property
    def state(self) -> CaseState:
        """What the outcome means."""
        return CaseState.VACUOUS if self.outcome is Outcome.OK and self.vacuous else STATES[self.outcome]


class KernelExport(Export):
    """Kernels of one kind of operator in one session of each side; null on a side that has none."""

    operator: str
    base_ms: float | None
    head_ms: float | None
    change_ms: float
    launches: tuple[int, int]
    """Base and head."""
    source: str
    """`same`, `changed`, `new` or `gone`; empty where that is not known."""

    @classmethod
    def of(cls, kernel: KernelChange) -> KernelExport:
        """Return a change for programs."""
        return cls(**vars(kernel), change_ms=kernel.change_ms)


class CaseComparison(Export):
    """Result of one case. Relative numbers are fractions of base; what is not known is null."""

    case: str
    identity: str
    as_shipped: bool
    verdict: Verdict
    suspicion: Verdict | None
    confidence: float | None
    reasons: list[str]
    base: SideExport | None
    head: SideExport | None
    relative: float | None
    low: float | None
    high: float | None
    delta_ms: float | None
    p: float | None
    relevant: float | None
    sees: float | None
    sessions: tuple[int, int] | None
    clock: str | None
    more_sessions: int | None
    kernels: list[KernelExport] = Field(default=[])
    """Which kernels make the change, the largest first; of slower and faster cases whose kernels were watched."""

    def strip(self, reach: float) -> Markup:
        """Its change on a scale that ends at `reach`."""
        from harness.judge.report.strips import interval_strip

        low, high, middle, relevant = (
            math.nan if number is None else number for number in (self.low, self.high, self.relative, self.relevant)
        )
        return interval_strip(low, high, middle, relevant, reach, self.verdict.value)

    @property
    def bounded(self) -> bool:
        """Whether the interval of its change is known."""
        return self.low is not None and self.high is not None


class NotCompared(Export):
    """A series that was left out."""

    identity: str
    case: str
    as_shipped: bool
    reason: str


class GeometricMean(Export):
    """Head over base, over all cases of a path."""

    identity: str
    path: str
    ratio: float | None
    low: float | None
    high: float | None
    series: int
    left_out: int


class RankingFlip(Export):
    """Two paths that changed places."""

    identity: str
    what: str
    was_faster: str
    now_faster: str
    before: float
    after: float


class ComparisonExport(Export):
    """All of it."""

    schema_version: Literal[1] = Field(SCHEMA, alias="schema")
    verdict: str
    """Verdict on the whole: the meaning of the exit code."""
    exit_code: int
    fit: bool | None
    unfit_because: list[str]
    needed_minutes: float
    cases: list[CaseComparison]
    not_compared: list[NotCompared]
    geometric_means: list[GeometricMean]
    ranking_flips: list[RankingFlip]

    @property
    def worst_first(self) -> list[CaseComparison]:
        """The cases in the order of display."""
        rank = {verdict: place for place, verdict in enumerate(ORDER)}
        return sorted(
            self.cases,
            key=lambda comparison: (rank.get(comparison.verdict, len(rank)), -abs(comparison.relative or 0.0)),
        )

    @property
    def reach(self) -> float:
        """End of a forest plot of all cases, a fraction of base: it has every estimate and nearly every interval."""
        changes = [abs(comparison.relative) for comparison in self.cases if comparison.relative is not None]
        bounds = [(comparison.low, comparison.high) for comparison in self.cases]
        ends = sorted(max(abs(low), abs(high)) for low, high in bounds if low is not None and high is not None)
        far = max([*changes, *ends[: math.ceil(0.9 * len(ends))], LEAST_REACH])
        return min(MOST_REACH, math.ceil(far * 20) / 20)


def export_comparison(
    result: ComparisonResult, means: Sequence[PathMean] = (), flips: Sequence[PathFlip] = ()
) -> ComparisonExport:
    """Convert a result, with means and flips of paths, to an export."""
    code = exit_code(result)
    summarise_sides(side for comparison in result.cases for side in (comparison.base, comparison.head) if side)
    return ComparisonExport(
        verdict=verdict_of(code),
        exit_code=code,
        fit=result.fitness.fit,
        unfit_because=list(result.fitness.reasons) if result.fitness.fit is False else [],
        needed_minutes=result.needed_minutes,
        cases=[_case(comparison) for comparison in result.cases],
        not_compared=[NotCompared(**pair.key._asdict(), reason=pair.reason) for pair in result.left_out],
        geometric_means=[
            GeometricMean(
                identity=mean.identity, path=mean.path, **{k: finite(v) for k, v in vars(mean.overall).items()}
            )
            for mean in means
        ],
        ranking_flips=[RankingFlip(identity=flip.identity, what=flip.what, **vars(flip.flip)) for flip in flips],
    )


def comparison_markdown(export: ComparisonExport) -> str:
    """Format the verdicts as a table in Markdown, the worst first."""
    headers = ("case", "verdict", "base", "head", "change", "interval", "can see")
    return f"**{export.verdict}**\n\n{markdown_table(map(_verdict_row, export.worst_first), headers)}\n"


def write_comparison(
    export: ComparisonExport, *, export_json: Path | None, export_csv: Path | None, export_markdown: Path | None
) -> None:
    """Write the requested files."""
    if export_json:
        write_whole(export_json, json_text(export))
    if export_csv:
        write_whole(export_csv, csv_text(export.cases))
    if export_markdown:
        write_whole(export_markdown, comparison_markdown(export))


def read_comparison(file: Path) -> ComparisonExport:
    """Return what `gate --json` or `compare --json` wrote. Raises UsageError if the file is none of that."""
    try:
        if file.stat().st_size > LARGEST_FILE_BYTES:
            raise ValueError(f"larger than {LARGEST_FILE_BYTES >> 20} MB")
        return ComparisonExport.model_validate_json(file.read_bytes())
    except (OSError, ValueError) as error:
        hint = "`adreno-bench gate --export-json FILE` writes one"
        raise UsageError(f"{file} is not a result of gate or compare: {reason_alone(error)}", hint=hint) from error


def _case(comparison: Comparison) -> CaseComparison:
    change = comparison.change
    numbers = ("relative", "low", "high", "delta_ms", "p", "relevant", "sees")
    return CaseComparison(
        **comparison.key._asdict(),
        verdict=comparison.verdict,
        suspicion=comparison.suspicion,
        confidence=comparison.confidence,
        reasons=list(comparison.all_reasons),
        base=_side(comparison.base, comparison.shown_ms("base")),
        head=_side(comparison.head, comparison.shown_ms("head")),
        **{name: finite(getattr(change, name)) if change else None for name in numbers},
        sessions=change.sessions if change else None,
        clock=change.clock if change else None,
        more_sessions=change.more_sessions if change else None,
        kernels=[KernelExport.of(kernel) for kernel in comparison.kernels],
    )


def _side(side: Side | None, latency_ms: float) -> SideExport | None:
    if side is None:
        return None
    same = {name: getattr(side, name) for name in SideExport.model_fields.keys() - {"latency_ms"}}
    return SideExport(latency_ms=finite(latency_ms), **same)


def _side_text(side: SideExport) -> str:
    if side.latency_ms is not None:
        return words.latency(side.latency_ms)
    return f"{words.SYMBOLS[side.state]} {side.state.value}"


def _verdict_row(comparison: CaseComparison) -> tuple[str, ...]:
    base, head = (_side_text(side) if side else "-" for side in (comparison.base, comparison.head))
    bounds = (comparison.low, comparison.high) if comparison.low is not None and comparison.high is not None else None
    interval = words.interval(bounds).strip(" ()") or "-"
    sees = "-" if comparison.sees is None else f"{comparison.sees:.1%}"
    return comparison.case, comparison.verdict.value, base, head, words.percent(comparison.relative), interval, sees
