"""`adreno-bench partitions`: what of a network went to CLML."""

from __future__ import annotations

from dataclasses import asdict

from harness.base.failures import UsageError
from harness.cli.options import DEFAULT_RECORDS, AsJson, RecordedCase, RecordsPlace
from harness.cli.record_filter import newest_records
from harness.compile.paths.clml.offload_report import OffloadReport
from harness.judge.report.screen import out, out_json


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
