"""What a tool adds to the page of a run: lines of text on a build, shown beside its case and its verdict.

A tool names a place under `report` in its `page_sections`: a function of the records files of the page that returns
`BuildLines`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from harness.base.tool import load, places
from harness.measure.records.record import Record

PAGE = "report"


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
"""Returns lines of text on a build, the first of which is shown strong; none if there is nothing to say."""
ReadLines = Callable[[Sequence[Path]], BuildLines]
"""Reads what lies beside records files. It names what it cannot read, and leaves it out."""


def load_sections(records: Sequence[Path]) -> list[BuildLines]:
    """Return what tools add to the page of these records files."""
    readers: list[ReadLines] = [load(place) for page, place in places("page_sections") if page == PAGE]
    return [read(records) for read in readers]
