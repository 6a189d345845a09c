"""What a tool adds to the page of a run: lines of text on a build, and what is folded below its case.

A tool names places in its `page_sections`. Under `report`, a function of the records files of the page that returns
`BuildLines`. Under `details`, a function of `PageFiles` and of the artifacts of the page that returns `Details`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.base.tool import added
from harness.judge.compare import KernelChange
from harness.measure.records.record import Record

PAGE, DETAILS = "report", "details"


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


BuildLines = Callable[[BuildKey], Sequence[str]]
"""Returns lines of text on a build, the first in bold; may be empty."""
ReadLines = Callable[[Sequence[Path]], BuildLines]
"""Reads files beside records files. Names and skips unreadable ones."""


def load_sections(records: Sequence[Path]) -> list[BuildLines]:
    """Return what tools add to the page of these records files."""
    readers: list[ReadLines] = added("page_sections", PAGE)
    return [read(records) for read in readers]


class PageFiles(NamedTuple):
    """The files that a page is made of."""

    records: Sequence[Path]
    """Files of records of the page, and of what they are compared with."""
    profiles: Sequence[Path]
    """Files of `--profile`."""


@dataclass(frozen=True)
class Details:
    """A tool's details on builds."""

    block: Callable[[Record], str]
    """Returns HTML for the build of a record, below its case; or nothing."""
    moved: Callable[[str, str], Sequence[KernelChange]] = lambda _base, _head: ()
    """Returns the kernels that differ between the artifacts of base and head; nothing if they are not known."""


def load_details(files: PageFiles, artifacts: Collection[str]) -> list[Details]:
    """Return the tools' details on these artifacts. Raises SetupMissing; UsageError for a bad profile."""
    readers: list[ReadDetails] = added("page_sections", DETAILS)
    return [read(files, artifacts) for read in readers]


ReadDetails = Callable[[PageFiles, Collection[str]], Details]
