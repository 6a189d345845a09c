"""What several commands read first: the records of a file, as far as their cases were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.run.record import Record


def wanted(case: str, globs: Sequence[str] | None) -> bool:
    """Whether a case id matches any of the globs; without globs every one does."""
    import fnmatch

    return not globs or any(fnmatch.fnmatchcase(case, glob) for glob in globs)


def read_records(file: Path, globs: Sequence[str] | None) -> list[Record]:
    """The wanted records; lines that are none are named. Raises UsageError if there is no such file."""
    import sys

    from harness.failures import UsageError
    from harness.run.record import RecordFile

    if not file.exists():
        raise UsageError(f"there is no {file}", hint="`adreno-bench run` makes records")
    loaded = RecordFile(file).load()
    for skipped in loaded.skipped:
        sys.stderr.write(f"skipped {skipped}\n")
    return [record for record in loaded.records if wanted(record.case, globs)]
