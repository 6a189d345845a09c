"""`adreno-bench show`: what records say."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.device import PeakMemory
from harness.base.failures import UsageError
from harness.base.outcome import exit_code
from harness.base.plan import SUSTAINED
from harness.base.tables import size, table
from harness.cli import completion
from harness.cli.hints import runnable
from harness.cli.options import (
    DEFAULT_RECORDS,
    AsJson,
    RecordExports,
    RecordsPlace,
    grouped,
    matches_globs,
    output_option,
)
from harness.cli.record_filter import no_records, open_index
from harness.compile.paths.clml.offload_report import OffloadReport
from harness.compile.paths.clml.report import render
from harness.judge.remarks import remarks
from harness.judge.report.part_view import view_of
from harness.judge.report.screen import out, out_json, out_whole
from harness.judge.report.table import json_array, milliseconds, results_table
from harness.judge.stats.pair import Change, finite
from harness.measure.facts import Batches
from harness.measure.probes.batches import format_batches

if TYPE_CHECKING:
    from harness.judge.path_ranking import Standing
    from harness.measure.records.places import RecordSource
    from harness.measure.records.record import Record

MOST_ROWS = 5_000
"""Series that are shown one by one."""


@grouped
def show(
    exports: RecordExports,
    glob: Annotated[
        str | None,
        typer.Argument(metavar="[GLOB]", help="Only cases whose id matches.", autocompletion=completion.recorded_cases),
    ] = None,
    records: RecordsPlace = str(DEFAULT_RECORDS),
    every: Annotated[
        bool, typer.Option("--every", help="Show every record, not only the latest of each series.")
    ] = False,
    partitions: Annotated[
        bool, typer.Option("--partitions", help="Show what went to CLML, what stayed on OpenCL, and why.")
    ] = False,
    crossover: Annotated[
        bool, typer.Option("--crossover", help="Show which path is fastest for each model, and by how much.")
    ] = False,
    whole: Annotated[bool, typer.Option("--all", help="Show every field of the record of one case.")] = False,
    sustained: Annotated[
        bool,
        typer.Option(
            "--sustained",
            help="Show sustained runs: the first and the last minute, and when heat slowed the phone down.",
        ),
    ] = False,
    plot: Annotated[
        Path | None, output_option(metavar="FILE.html", help="With --sustained: draw them into this page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show the latest record of each case, or a summary of one case.

    With --all it shows every field of that record.
    """
    if plot and not sustained:
        raise UsageError("--plot draws sustained runs", hint="add --sustained")
    if sum((partitions, crossover, sustained)) > 1:
        raise UsageError("--partitions, --crossover and --sustained exclude each other", hint="choose one")

    def asked_for(case: str) -> bool:
        return matches_globs(case, [glob] if glob else None)

    plain = not (every or crossover or sustained or as_json or partitions or exports.given)
    with open_index(records) as index:
        if plain and (overview := _overview(index, asked_for)):
            out(overview)
            return
        chosen = _choose_records(index, asked_for, every=every, builds=crossover, sustained=sustained)
        if not chosen:
            raise no_records(glob, records, index, sustained=sustained)
    exports.write_records(chosen, exit_code(record.outcome for record in chosen))
    if sustained:
        _show_sustained(chosen, plot, as_json)
    elif partitions:
        _show_partitions(chosen, as_json)
    elif crossover:
        _show_path_ranking(chosen, as_json)
    elif as_json:
        out_whole(json_array(chosen))
    else:
        out(runnable(_text(chosen, whole=whole), records))


def _text(chosen: Sequence[Record], *, whole: bool) -> str:
    """Return a table of records, or what there is to say of a single one: a summary, or the whole of it."""
    if len(chosen) > 1:
        return results_table(chosen)
    if not whole:
        from harness.judge.report.case_summary import case_summary

        return case_summary(chosen[0])
    record = chosen[0]
    told = "; ".join(f"{remark.word}: {remark.why}" for remark in remarks(record))
    waiting = format_batches(record.part(Batches), record.device_ms)
    beside = {"peak memory": format_peak_memory(record.part(PeakMemory)), "waiting": waiting, "remarks": told}
    fields = record.model_dump(mode="json", by_alias=True)
    return _whole({**fields, **fields.pop("parts"), **beside})


def _overview(index: RecordSource, asked_for: Callable[[str], bool]) -> str:
    """Return the outcomes of each case, if there are more series than anybody reads; else an empty text."""
    from harness.measure.records.index import RecordIndex

    if isinstance(index, RecordIndex):
        return ""
    found = index.newest_outcomes(asked_for)
    series = sum(sum(counts.values()) for counts in found.values())
    if series <= MOST_ROWS:
        return ""
    rows = [
        (case, sum(counts.values()), ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
        for case, counts in found.items()
    ]
    remark = f"{series} series: name a case, such as '{rows[0][0]}', to see each; --json has all"
    return (
        f"{table(rows, ('case', 'series', 'last outcomes'), right=('series',), prose=('last outcomes',))}\n\n{remark}"
    )


def _choose_records(
    index: RecordSource, asked_for: Callable[[str], bool], *, every: bool, builds: bool, sustained: bool
) -> list[Record]:
    """Return the latest record of each series.

    Every session of its latest build with `builds`, or simply every record.
    """
    if builds:
        return [record for build in index.newest_builds(asked_for) for record in build]
    if every:
        return [
            record
            for record in index.every(asked_for)
            if record.standalone is sustained and (SUSTAINED in record.parts) is sustained
        ]
    newest = index.newest(asked_for, sustained=sustained)
    return [record for record in newest if (SUSTAINED in record.parts) is sustained]


def _show_partitions(records: Sequence[Record], as_json: bool) -> None:
    reports = {record.case: report for record in records if (report := record.part(OffloadReport))}
    if not reports:
        raise UsageError("none of these cases was cut into parts", hint="only path clml is: try '*-clml-*'")
    if as_json:
        out_json([{"case": case, **report.to_json()} for case, report in reports.items()])
    else:
        out("\n\n".join(f"{case}\n\n{render(report)}" for case, report in reports.items()))


def _show_path_ranking(records: Sequence[Record], as_json: bool) -> None:
    from harness.judge.path_ranking import rank_paths

    ranked = rank_paths(records)
    if as_json:
        out_json([{**asdict(r), "lead": _plain_lead(r.lead), "conclusion": r.conclusion} for r in ranked])
        return
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
    out("\n".join([drawn, "", *conclusions]))


def _plain_lead(lead: Change | None) -> dict[str, float | None] | None:
    if lead is None:
        return None
    return {name: finite(getattr(lead, name)) for name in ("relative", "low", "high", "sees")}


def _latency(standing: Standing) -> tuple[str, str]:
    if standing.wall_ms is None:
        return ("emulated" if standing.emulated else standing.outcome), "-"
    return milliseconds(standing.wall_ms), str(standing.sessions)


def _whole(record: dict[str, object]) -> str:
    width = max(map(len, record))
    known = {name: value for name, value in record.items() if value not in ("", None, [], {})}
    return "\n".join(f"{name:{width}}  {_value(value)}" for name, value in known.items())


def format_peak_memory(peak: PeakMemory | None) -> str:
    """Both peaks; `-` where one is not known. Empty if neither is."""
    if peak in (None, PeakMemory()):
        return ""
    assert peak
    return f"process {size(peak.process_bytes)}, GPU {size(peak.gpu_bytes)} at most"


def _value(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], float):
        return " ".join(f"{sample:.4g}" for sample in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(part)}" for name, part in value.items() if part not in ("", [], {}, None))
    if isinstance(value, list):
        structured = any(isinstance(part, dict) for part in value)
        return "; ".join(map(_value, value)) if structured else " ".join(map(str, value))
    return str(value).replace("\n", "\n    ")


def _show_sustained(records: Sequence[Record], plot: Path | None, as_json: bool) -> None:
    """Show sustained runs, and draw them if `plot` names a file."""
    view = view_of(SUSTAINED)
    if plot:
        view.draw(records, plot)
    if as_json:
        out_json([{**json.loads(record.line()), **view.extras(record)} for record in records])
    else:
        out("\n".join([view.table(records), *([f"drawn in {plot}"] if plot else [])]))
