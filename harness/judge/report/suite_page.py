"""The page of a run, a gate or a comparison: one file that needs no network and that a colleague can be sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from harness.judge.path_ranking import rank_paths
from harness.judge.report import words
from harness.judge.report.comparison import CaseComparison, ComparisonExport, KernelExport
from harness.judge.report.facts import case_facts, device_facts, reproduce
from harness.judge.report.matrix import Entry, Matrix, ModelRow, entries_of, matrices_of
from harness.judge.report.page import COPY, FILTER, write_page
from harness.judge.report.part_view import part_facts
from harness.judge.report.sections import BuildKey, BuildLines, Details
from harness.judge.report.strips import samples_strip
from harness.judge.sides import SeriesKey
from harness.judge.stats.sample_summary import SampleSummary, summarise_samples
from harness.judge.stats.session import location_ms
from harness.measure.probes.latency import KERNELS
from harness.measure.records.record import Record

MOST_KERNELS = 5
"""Kinds of operators shown below a verdict."""


@dataclass(frozen=True)
class ClockSamples:
    """The samples of one clock, over all sessions of a case."""

    name: str
    location_ms: float
    numbers: SampleSummary
    strip: Markup
    scale_ms: tuple[float, float]
    """Both ends of the strip, those of every clock of the case."""


def write_report(
    file: Path,
    builds: Iterable[Sequence[Record]],
    comparison: ComparisonExport | None = None,
    standalone: Iterable[Record] = (),
    sections: Sequence[BuildLines] = (),
    details: Sequence[Details] = (),
    answer: str = "",
) -> None:
    """Write the page. Raises SetupMissing without jinja2, RigFailure if the disk refuses it.

    Args:
        file: The page to write.
        builds: The sessions of the latest build of each series.
        comparison: Verdicts of a gate or a comparison.
        standalone: Other runs of these builds, such as those without a pause.
        sections: Lines of tools on builds.
        details: Details of tools on builds.
        answer: Result of the comparison, in a sentence.
    """
    others = {(SeriesKey.of(record), record.build): [*part_facts(record)] for record in standalone}
    matrices = matrices_of(entries_of(builds))
    began = sorted(session.started for matrix in matrices for entry in matrix.entries for session in entry.sessions)
    write_page(
        file,
        "report.html.j2",
        scripts=[FILTER, COPY],
        title=_title(matrices),
        matrices=matrices,
        conclusions=conclusions_of,
        states=words.count_states(entry.state for matrix in matrices for entry in matrix.entries),
        measured_at=words.between(began[0], began[-1]) if began else "",
        kinds=sorted({kind for matrix in matrices for kind in matrix.kinds}),
        comparison=comparison,
        answer=answer,
        notes=lambda record: _notes(sections, BuildKey.of(record)),
        notes_now=lambda comparison: _notes(sections, _head_build(comparison)) if comparison.head else [],
        kernels_between=lambda comparison: _kernels_between(comparison, details),
        most_kernels=MOST_KERNELS,
        device_facts=device_facts,
        clocks=clocks_of,
        case_facts=lambda entry: case_facts(entry, others.get((SeriesKey.of(entry.record), entry.record.build), ())),
        details=lambda record: [Markup(html) for tool in details if (html := tool.block(record))],
        reproduce=reproduce,
    )


def _title(matrices: Sequence[Matrix]) -> str:
    """Return the title: `18 cases on Adreno750, TVM 0.27.0.post1`."""
    if not matrices:
        return "Report"
    cases = sum(len(matrix.entries) for matrix in matrices)
    where = matrices[0].name if len(matrices) == 1 else f"{len(matrices)} devices"
    compilers = {session.compilers.tvm for matrix in matrices for entry in matrix.entries for session in entry.sessions}
    return f"{cases} case{'s' * (cases > 1)} on {where}, TVM {', '.join(sorted(compilers))}"


def conclusions_of(row: ModelRow) -> list[str]:
    """Return the fastest path of each model, if the sessions decide it."""
    timed = {entry.record.path for entry in row.entries if entry.wall_ms}
    ranked = rank_paths([record for entry in row.entries for record in entry.sessions]) if len(timed) > 1 else []
    many = len(ranked) > 1
    return [
        f"{f'{ranking.precision} {ranking.tuning}: ' if many else ''}"
        f"{ranking.conclusion if ranking.lead.verdict.changed else 'no sure winner'}"
        for ranking in ranked
        if ranking.lead
    ]


def _notes(sections: Sequence[BuildLines], build: BuildKey) -> list[Sequence[str]]:
    """Return the lines that each tool has on a build."""
    return [lines for section in sections if (lines := section(build))]


def _head_build(comparison: CaseComparison) -> BuildKey:
    head = comparison.head
    assert head is not None
    return BuildKey(comparison.identity, comparison.case, comparison.as_shipped, head.artifact, head.tvm)


def _kernels_between(comparison: CaseComparison, details: Sequence[Details]) -> list[KernelExport]:
    """Return kernels that take longer or shorter now: those that the gate watched, else those that tools know."""
    if comparison.kernels or not comparison.verdict.changed or not comparison.base or not comparison.head:
        return comparison.kernels
    moved = (tool.moved(comparison.base.artifact, comparison.head.artifact) for tool in details)
    return [KernelExport.of(kernel) for kernel in next(filter(None, moved), ())]


def clocks_of(entry: Entry) -> Iterator[ClockSamples]:
    """Yield those clocks of a case that have samples."""
    right = [record for record in entry.sessions if record.outcome is entry.record.outcome]
    device = "device" if entry.record.device_clock in ("", KERNELS) else "device (whole recordings)"
    by_clock = {"wall": [record.wall_ms for record in right], device: [record.device_ms for record in right]}
    samples = {name: [ms for session in sessions for ms in session] for name, sessions in by_clock.items()}
    summaries = {name: numbers for name, all_ms in samples.items() if (numbers := summarise_samples(all_ms))}
    ends = (
        min((n.min_ms for n in summaries.values()), default=0),
        max((n.max_ms for n in summaries.values()), default=0),
    )
    for name, numbers in summaries.items():
        location = entry.wall_ms if name == "wall" and entry.wall_ms else location_ms(samples[name])
        yield ClockSamples(name, location, numbers, samples_strip(by_clock[name], numbers, f"{name} time", ends), ends)
