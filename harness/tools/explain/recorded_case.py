"""The cases that a command explains by their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.completion import recorded_cases
from harness.cli.options import matching
from harness.cli.record_filter import no_records, open_index

if TYPE_CHECKING:
    from harness.measure.records.record import Record

RecordedCase = Annotated[
    str | None, typer.Argument(metavar="CASE", help="Case id, or a glob.", autocompletion=recorded_cases)
]


def newest_records(place: str, glob: str | None) -> list[Record]:
    """Return the latest record of each series that matches, without sustained runs. Raises UsageError for none."""
    with open_index(place) as index:
        records = list(index.newest(matching([glob] if glob else None)))
        if not records:
            raise no_records(glob, place, index)
        return records
