"""The first wrong operators that `diverge` found, in a file beside the records, for the page of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from device_runner.files import append_lines
from harness.base.terminal import tell
from harness.judge.report.sections import BuildKey, BuildLines
from harness.tools.shared.full_disk import writing

ENDING = ".diverge"
LARGEST_FILE_BYTES = 16 << 20


class FirstWrong(BaseModel):
    """Where one build of a network goes off."""

    model_config = ConfigDict(frozen=True)

    build: BuildKey
    sentences: tuple[str, ...]
    """All that is known of it. The first names the operator."""


def section(records: Sequence[Path]) -> BuildLines:
    """Return what the page of a run says of its builds. What cannot be read is named on standard error."""
    try:
        entries = read_first_wrong(records)
    except (OSError, ValueError) as error:
        tell(f"skipped the first wrong operators: {error}")
        entries = {}
    return lambda build: entries[build].sentences if build in entries else ()


def file_beside(records: Path) -> Path:
    """File of what was found, for a records file."""
    return records.with_suffix(ENDING)


def append_first_wrong(records: Path, entry: FirstWrong) -> None:
    """Add it to the file beside the records. Raises DiskFull, OSError."""
    file = file_beside(records)
    with writing(file.parent):
        append_lines(file, entry.model_dump_json().encode() + b"\n")


def read_first_wrong(records: Iterable[Path]) -> dict[BuildKey, FirstWrong]:
    """Return what was found last of each build. Raises OSError, and ValueError of a file that is torn or foreign."""
    entries: dict[BuildKey, FirstWrong] = {}
    for file in filter(Path.is_file, map(file_beside, records)):
        if file.stat().st_size > LARGEST_FILE_BYTES:
            raise ValueError(f"{file}: more than {LARGEST_FILE_BYTES >> 20} MB")
        for line in file.read_bytes().splitlines():
            entry = FirstWrong.model_validate_json(line)
            entries[entry.build] = entry
    return entries
