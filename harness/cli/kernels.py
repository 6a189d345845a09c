"""Where the kernels of a case lie, and what the device's OpenCL compiler said of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from device_runner.store import cache_root
from harness.build.artifact import kernel_files
from harness.cli.screen import out, out_json
from harness.run.outcome import Outcome

if TYPE_CHECKING:
    from harness.run.record import Record

MOST_LINES = 20
"""Of a build log; what follows the first error is mostly its consequence."""


def show_kernels(records: Sequence[Record], as_json: bool) -> None:
    """Print it for each record."""
    if as_json:
        out_json([_plain(record) for record in records])
    else:
        out("\n\n".join(map(kernels_text, records)))


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
    """A few lines: the outcome, the beginning of the build log if the device refused a kernel, and the files."""
    lines = [f"{record.case}: {record.outcome.value}"]
    if record.outcome is Outcome.KERNEL_BUILD_ERROR:
        log = record.evidence.splitlines()
        more = len(log) - MOST_LINES
        lines += [
            record.message,
            *log[:MOST_LINES],
            *([f"... and {more} more lines in the record"] if more > 0 else []),
        ]
    return "\n  ".join([*lines, *_files(record)])


def _files(record: Record) -> list[str]:
    files = kernel_files(cache_root(), record.artifact)
    if files is None:
        return ["its kernels are not in the cache; `adreno-bench build` makes them again, if the compiler comes to any"]
    return [f"its kernels, one file each, are in {files[0].parent}", *(file.name for file in files)] if files else []
