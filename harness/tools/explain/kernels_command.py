"""`adreno-bench kernels`: the OpenCL kernels of a case."""

from __future__ import annotations

from typing import TYPE_CHECKING

from device_runner.store import cache_root
from harness.base.outcome import Outcome
from harness.cli.options import DEFAULT_RECORDS, AsJson, RecordedCase, RecordsPlace
from harness.cli.record_filter import newest_records
from harness.judge.report.screen import out, out_json
from harness.tools.explain.kernel_files import kernel_files

if TYPE_CHECKING:
    from harness.measure.records.record import Record

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
        out_json([_plain(record) for record in chosen])
    else:
        out("\n\n".join(map(kernels_text, chosen)))


def _plain(record: Record) -> dict[str, object]:
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
        more = len(log) - MOST_LINES
        lines += [
            record.message,
            *log[:MOST_LINES],
            *([f"... and {more} more lines in the record"] if more > 0 else []),
        ]
    return "\n  ".join([*lines, *_file_lines(record)])


def _file_lines(record: Record) -> list[str]:
    files = kernel_files(cache_root(), record.artifact)
    if files is None:
        return ["its kernels are not in the cache; `adreno-bench build` makes them again, if the case compiles"]
    return [f"its kernels, one file each, are in {files[0].parent}", *(file.name for file in files)] if files else []
