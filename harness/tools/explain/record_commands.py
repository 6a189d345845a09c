"""`adreno-bench kernels`, `partitions`, `crossover` and `diverge`: the cases of records, explained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.base.tables import table
from harness.base.terminal import tell
from harness.cli import options
from harness.cli.completion import recorded_cases
from harness.cli.hints import last_words, runnable
from harness.cli.options import DEFAULT_RECORDS, AsJson, RecordsPlace, matches_globs, matching
from harness.cli.record_filter import no_records, open_index
from harness.compile.paths.clml.offload_report import OffloadReport
from harness.judge.report.screen import out, out_json
from harness.tools.explain.kernel_files import kernel_files

if TYPE_CHECKING:
    from harness.judge.path_ranking import PathRanking, Standing
    from harness.judge.stats.pair import Change
    from harness.measure.records.record import Record


RecordedCase = Annotated[
    str | None, typer.Argument(metavar="CASE", help="Case id, or a glob.", autocompletion=recorded_cases)
]


def newest_records(place: str, glob: str | None) -> list[Record]:
    """Return the latest record of each series that matches, without sustained runs. Raises UsageError for none."""
    with open_index(place) as index:
        records = list(index.newest(matching([glob] if glob else None)))
        if not records:
            raise no_records(glob, place, index)
        return records


MOST_LINES = 20
"""Most lines of a build log; what follows the first error is mostly its consequence."""


def kernels(
    case: RecordedCase = None,
    records: RecordsPlace = str(DEFAULT_RECORDS),
    as_json: AsJson = False,
) -> None:
    """Show the files of the OpenCL kernels, and the build log of the device."""
    chosen = newest_records(records, case)
    if as_json:
        out_json([_plain_kernels(record) for record in chosen])
    else:
        out("\n\n".join(map(kernels_text, chosen)))


def _plain_kernels(record: Record) -> dict[str, object]:
    log = record.evidence if record.outcome is Outcome.KERNEL_BUILD_ERROR else ""
    files = kernel_files(cache_root(), record.artifact)
    return {
        "case": record.case,
        "outcome": record.outcome.value,
        "message": record.message,
        "build_log": log,
        "kernels": None if files is None else list(map(str, files)),
    }


def kernels_text(record: Record) -> str:
    """Return a few lines: the outcome, the beginning of the build log if the device refused a kernel, and the files."""
    lines = [f"{record.case}: {record.outcome.value}"]
    if record.outcome is Outcome.KERNEL_BUILD_ERROR:
        log = record.evidence.splitlines()
        lines += [record.message, *log[:MOST_LINES]]
        if len(log) > MOST_LINES:
            lines.append(f"... and {len(log) - MOST_LINES} more lines in the record")
    files = kernel_files(cache_root(), record.artifact)
    if files is None:
        lines.append("its kernels are not in the cache; `adreno-bench build` makes them again, if the case compiles")
    elif files:
        lines += [f"its kernels, one file each, are in {files[0].parent}", *(file.name for file in files)]
    return "\n  ".join(lines)


def partitions(
    case: RecordedCase = None,
    records: RecordsPlace = str(DEFAULT_RECORDS),
    as_json: AsJson = False,
) -> None:
    """Show what went to CLML, what stayed on OpenCL, and why."""
    from harness.tools.explain.partitions import render

    parts = {record.case: record.part(OffloadReport) for record in newest_records(records, case)}
    reports = {case: part for case, part in parts.items() if part}
    if not reports:
        raise UsageError("none of these cases was cut into parts", hint="only path clml is: try '*-clml-*'")
    if as_json:
        out_json([{"case": case, **asdict(report)} for case, report in reports.items()])
    else:
        out("\n\n".join(f"{case}\n\n{render(report)}" for case, report in reports.items()))


def crossover(
    case: RecordedCase = None,
    records: RecordsPlace = str(DEFAULT_RECORDS),
    as_json: AsJson = False,
) -> None:
    """Show which path is fastest for each model, and by how much.

    Compares all sessions of the latest build of each case.
    """
    from harness.judge.path_ranking import rank_paths

    with open_index(records) as index:
        builds = index.newest_builds(lambda name: matches_globs(name, [case] if case else None))
        sessions = [record for build in builds for record in build]
        if not sessions:
            raise no_records(case, records, index)
    ranked = rank_paths(sessions)
    if as_json:
        out_json([{**asdict(r), "lead": _plain_lead(r.lead), "conclusion": r.conclusion} for r in ranked])
    else:
        out(_ranking_text(ranked))


def _ranking_text(ranked: Sequence[PathRanking]) -> str:
    rows = [
        (
            r.model,
            r.precision,
            r.tuning,
            ", ".join([s.path, *s.remarks]),
            *_latency(s),
            "-" if s.mac_share is None else f"{s.mac_share:.0%}",
        )
        for r in ranked
        for s in r.standings
    ]
    conclusions = [f"{r.model} {r.precision} {r.tuning} on {r.identity_key}: {r.conclusion}" for r in ranked]
    headers = ("model", "precision", "tuning", "path", "wall ms", "sessions", "MACs offloaded")
    drawn = table(rows, headers, right=headers[4:], alike=("precision", "tuning"), spare=("MACs offloaded",))
    return "\n".join([drawn, "", *conclusions])


def _plain_lead(lead: Change | None) -> dict[str, float | None] | None:
    from harness.judge.stats.pair import finite

    if lead is None:
        return None
    return {name: finite(getattr(lead, name)) for name in ("relative", "low", "high", "sees")}


def _latency(standing: Standing) -> tuple[str, str]:
    from harness.judge.report.table import milliseconds

    if standing.wall_ms is None:
        return ("emulated" if standing.emulated else standing.outcome), "-"
    return milliseconds(standing.wall_ms), str(standing.sessions)


@last_words("nothing was found yet; what was built is kept; {command} starts again")
def diverge(
    case: RecordedCase = None,
    records: options.RecordsPlace = str(options.DEFAULT_RECORDS),
    suite: options.SuiteFile = options.DEFAULT_SUITE,
    model: options.Models = None,
    shape: options.Shapes = None,
    input: options.Inputs = None,
    fix: options.Fixes = None,
    trust: options.Trust = False,
    device: options.DeviceOfRecords = None,
    as_json: options.AsJson = False,
) -> None:
    """Find the first wrong or failing operator of a case.

    Runs the network of the case in pieces on the device, and keeps the smallest piece that shows the defect. `report`
    shows what it finds.
    """
    from harness.base.model import models_given
    from harness.tools.explain.divergence import find_divergence, newest_finding
    from harness.tools.explain.first_wrong import append_first_wrong

    models = models_given(model or (), shape or (), input or (), fix or (), trust=trust)
    report = find_divergence(newest_finding(newest_records(records, case)), suite, models, device)
    try:
        if (file := Path(records)).exists():
            append_first_wrong(file, report.first_wrong())
    except OSError as error:
        tell(f"`adreno-bench report` cannot show this: {error}")
    if as_json:
        out_json(report.plain())
    else:
        out(runnable(report.text(), records))
