"""`adreno-bench ingest`: the results of a bundle's run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.store import cache_root
from harness.base.outcome import exit_code
from harness.base.tables import counted
from harness.cli.options import DEFAULT_RECORDS, AsJson, RecordsFile, grouped
from harness.cli.rule_options import RuleOptions
from harness.judge.report import verdicts
from harness.judge.report.screen import out, out_json, out_parts, out_whole
from harness.judge.report.table import json_array, results_table

if TYPE_CHECKING:
    from harness.measure.records.record import Record, RecordFile
    from harness.tools.bundle.results import BundleResults


@grouped
def ingest(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="Folder that run.sh wrote, or an archive of it.")],
    rule: RuleOptions,
    records: RecordsFile = DEFAULT_RECORDS,
    bundle: Annotated[
        Path | None, typer.Option(metavar="BUNDLE", help="Bundle that was run, if this host did not pack it.")
    ] = None,
    partial: Annotated[bool, typer.Option("--partial", help="Accept the results of a run that was cut short.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check the results of a bundle and add them to the records.

    Refuses lines that were changed, removed or doubled, or that belong to another bundle. For a bundle with two builds
    it prints verdicts: exit 1 if a case is slower, 3 if one is wrong or broken.
    """
    from harness.judge import compare
    from harness.judge.report.comparison import export_comparison
    from harness.measure.records.record import RecordFile
    from harness.tools.bundle.results import read_results
    from harness.tools.bundle.verdict import verdicts_of

    file = RecordFile(records)
    file.require_writable()
    read = read_results(results, cache_root(), partial=partial, bundle=bundle)
    added = _add(read, file)
    _keep_peaks(read)
    if len(read.manifest.builds) == 1:
        if as_json:
            out_whole(json_array(read.records))
        elif read.records:
            out(f"{results_table(read.records)}\n")
        code = exit_code(record.outcome for record in read.records)
    else:
        result = verdicts_of(read, rule.rules)
        if as_json:
            out_json(export_comparison(result).plain())
        else:
            parts = verdicts.verdict_table(result.cases), verdicts.unfit(result.fitness)
            out_parts(*parts, verdicts.undecided(result))
            out("")
        code = compare.exit_code(result)
    if not as_json:
        short = f"; {counted(len(read.missing), 'turn was', 'turns were')} not run" if read.missing else ""
        earlier = f"; {counted(doubles, 'was', 'were')} there already" if (doubles := len(read.records) - added) else ""
        out(f"{counted(added, 'record')} of bundle {read.bundle[:12]} went to {records}{earlier}{short}")
    raise typer.Exit(code)


def _add(read: BundleResults, file: RecordFile) -> int:
    """Append the records that the file does not have, for results may be taken in twice; return how many."""
    records = _of_run(file, read.records[0].run) if read.records else []
    have = {(record.case, record.artifact, record.started_at) for record in records}
    new = [record for record in read.records if (record.case, record.artifact, record.started_at) not in have]
    file.append(*new)
    return len(new)


def _of_run(file: RecordFile, run: str) -> list[Record]:
    """Return the records of one run; the others are not parsed. Raises RigFailure, UsageError."""
    from harness.measure.records.record import NotARecord, parse

    mark = run.encode()

    def parse_own(line: bytes) -> Record:
        if mark not in line:
            raise NotARecord("of another run")
        return parse(line)

    return [record for record in file.load_as(parse_own).records if record.run == run]


def _keep_peaks(read: BundleResults) -> None:
    """Keep what the device does at best, for `adreno-bench profile`."""
    from harness.tools.shared.kernels.peaks import save_reported_peaks

    if read.peaks and read.records:
        save_reported_peaks(cache_root(), read.records[0].identity_key, read.peaks)
