"""`adreno-bench show`: records as a table or a summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.device import PeakMemory
from harness.base.outcome import exit_code
from harness.base.plan import SUSTAINED
from harness.base.tables import size, table
from harness.cli import options
from harness.cli.hints import runnable
from harness.cli.record_filter import no_records, open_index
from harness.judge.remarks import remarks
from harness.judge.report.screen import out, out_whole
from harness.judge.report.table import json_array, run_tables
from harness.measure.facts import Batches
from harness.measure.probes.batches import format_batches

if TYPE_CHECKING:
    from harness.measure.records.index import RecordSource
    from harness.measure.records.record import Record

MOST_ROWS = 5_000
"""Maximum number of series that have a row each."""


@options.grouped
def show(
    exports: options.RecordExports,
    case: options.RecordedGlob = None,
    records: options.RecordsPlace = str(options.DEFAULT_RECORDS),
    every: options.EveryRecord = False,
    whole: Annotated[bool, typer.Option("--all", help="Show every field of the record of one case.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Show the latest record of each case, or a summary of one case.

    With --all it shows every field of that record.
    """
    asked_for = options.matching([case] if case else None)
    plain = not (every or as_json or exports.given)
    with open_index(records) as index:
        if plain and (overview := _overview(index, asked_for)):
            out(overview)
            return
        entries = index.every(asked_for) if every else index.newest(asked_for)
        chosen = [record for record in entries if not record.standalone and SUSTAINED not in record.parts]
        if not chosen:
            raise no_records(case, records, index)
    exports.write_records(chosen, exit_code(record.outcome for record in chosen))
    if as_json:
        out_whole(json_array(chosen))
    else:
        out(runnable(_text(chosen, whole=whole), records))


def _text(chosen: Sequence[Record], *, whole: bool) -> str:
    """Return a table of records, or what there is to say of a single one: a summary, or the whole of it."""
    if len(chosen) > 1:
        return run_tables(chosen)
    if not whole:
        from harness.judge.report.case_summary import case_summary

        return case_summary(chosen[0])
    record = chosen[0]
    texts = "; ".join(f"{remark.word}: {remark.why}" for remark in remarks(record))
    waiting = format_batches(record.part(Batches), record.device_ms)
    more = {"peak memory": format_peak_memory(record.part(PeakMemory)), "waiting": waiting, "remarks": texts}
    fields = record.model_dump(mode="json", by_alias=True)
    return _whole({**fields, **fields.pop("parts"), **more})


def _overview(index: RecordSource, asked_for: Callable[[str], bool]) -> str:
    """Return the outcomes of each case, if there are more series than anybody reads; else an empty text."""
    from harness.measure.records.index import RecordIndex

    if isinstance(index, RecordIndex):
        return ""
    counts_by_case = index.newest_outcomes(asked_for)
    series = sum(sum(counts.values()) for counts in counts_by_case.values())
    if series <= MOST_ROWS:
        return ""
    rows = [
        (case, sum(counts.values()), ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
        for case, counts in counts_by_case.items()
    ]
    drawn = table(rows, ("case", "series", "last outcomes"), right=("series",), prose=("last outcomes",))
    return f"{drawn}\n\n{series} series: name a case, such as '{rows[0][0]}', to see each; --json has all"


def _whole(record: dict[str, object]) -> str:
    width = max(map(len, record))
    filled = {name: value for name, value in record.items() if value not in ("", None, [], {})}
    return "\n".join(f"{name:{width}}  {_value(value)}" for name, value in filled.items())


def format_peak_memory(peak: PeakMemory | None) -> str:
    """Return the known peaks; empty if neither is known."""
    peaks = (("process", peak.process_bytes), ("GPU", peak.gpu_bytes)) if peak else ()
    return ", ".join(f"{name} {size(length)}" for name, length in peaks if length is not None)


def _value(value: object) -> str:
    if isinstance(value, list) and value and isinstance(value[0], float):
        return " ".join(f"{sample:.4g}" for sample in value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {_value(part)}" for name, part in value.items() if part not in ("", [], {}, None))
    if isinstance(value, list):
        structured = any(isinstance(part, dict) for part in value)
        return "; ".join(map(_value, value)) if structured else " ".join(map(str, value))
    return str(value).replace("\n", "\n    ")
