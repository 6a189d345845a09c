"""The first wrong operators that `show --diverge` found, in a file beside the records, for the page of a run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from device_runner.disk import writing
from device_runner.files import append_lines
from harness.measure.records.record import Record

ENDING = ".diverge"
LARGEST_FILE_BYTES = 16 << 20


class BuildKey(NamedTuple):
    """Which build of a case on which device: of one that did not compile, by which TVM."""

    identity: str
    case: str
    as_shipped: bool
    artifact: str
    tvm: str

    @classmethod
    def of(cls, record: Record) -> BuildKey:
        """Return the build that a record ran."""
        return cls(record.identity_key, record.case, record.as_shipped, record.artifact, record.compilers.tvm)


class FirstWrong(BaseModel):
    """Where one build of a network goes off."""

    model_config = ConfigDict(frozen=True)

    build: BuildKey
    operator: str
    """Kind and name; of several that it may be, the last."""
    number: int
    """Its place in the network, from 1."""
    operators: int
    """Of the network."""
    sentences: tuple[str, ...]
    """All that is known of it."""


def file_beside(records: Path) -> Path:
    """File of what was found, for a records file."""
    return records.with_suffix(ENDING)


def append_first_wrong(records: Path, found: FirstWrong) -> None:
    """Add it to the file beside the records. Raises DiskFull, OSError."""
    file = file_beside(records)
    with writing(file.parent):
        append_lines(file, found.model_dump_json().encode() + b"\n")


def read_first_wrong(records: Iterable[Path]) -> dict[BuildKey, FirstWrong]:
    """Return what was found last of each build. Raises OSError, and ValueError of a file that is torn or foreign."""
    found: dict[BuildKey, FirstWrong] = {}
    for file in filter(Path.is_file, map(file_beside, records)):
        if file.stat().st_size > LARGEST_FILE_BYTES:
            raise ValueError(f"{file}: more than {LARGEST_FILE_BYTES >> 20} MB")
        for line in file.read_bytes().splitlines():
            one = FirstWrong.model_validate_json(line)
            found[one.build] = one
    return found
