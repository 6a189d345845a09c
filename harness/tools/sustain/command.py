"""`adreno-bench sustained`: what records say of sustained runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from harness.base.outcome import exit_code
from harness.base.plan import SUSTAINED
from harness.cli import options
from harness.cli.record_filter import no_records, open_index
from harness.judge.report.screen import out, out_json

if TYPE_CHECKING:
    from harness.measure.records.index import RecordSource
    from harness.measure.records.record import Record


@options.grouped
def sustained(
    exports: options.RecordExports,
    glob: options.RecordedGlob = None,
    records: options.RecordsPlace = str(options.DEFAULT_RECORDS),
    every: options.EveryRecord = False,
    plot: Annotated[Path | None, options.file_option(metavar="FILE.html", help="Draw them into this page.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Show sustained runs: the first and the last minute, and when heat slowed the phone down."""
    from harness.tools.sustain.view import figures_of, sustained_table

    with open_index(records) as index:
        chosen = _choose(index, glob, every=every)
        if not chosen:
            raise no_records(glob, records, index, sustained=True)
    exports.write_records(chosen, exit_code(record.outcome for record in chosen))
    if plot:
        from harness.tools.sustain.page import draw

        draw(chosen, plot)
    if as_json:
        out_json([{**json.loads(record.line()), **figures_of(record)} for record in chosen])
    else:
        out("\n".join([sustained_table(chosen), *([f"drawn in {plot}"] if plot else [])]))


def _choose(index: RecordSource, glob: str | None, *, every: bool) -> list[Record]:
    """Return the latest sustained run of each series, or every one."""
    asked_for = options.matching([glob] if glob else None)
    records = index.every(asked_for) if every else index.newest(asked_for, sustained=True)
    return [record for record in records if record.standalone and SUSTAINED in record.parts]
