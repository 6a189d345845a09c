"""How a part of records is shown: what a tool adds to `run`, `show` and a report.

`Tool.part_views` names the place of a `PartView` for each such part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.base.tool import load, places

if TYPE_CHECKING:
    from harness.measure.records.record import Record


@dataclass(frozen=True)
class PartView:
    """Functions of records that have the part."""

    table: Callable[[Sequence[Record]], str]
    """What a terminal gets."""
    facts: Callable[[Record], Sequence[tuple[str, str]]]
    """Lines below the case of the same build in a report: names and values."""


def view_of(part: str) -> PartView:
    """Return the view of a part. Raises KeyError if no tool has one."""
    view: PartView = load(dict(places("part_views"))[part])
    return view


def part_facts(record: Record) -> Iterator[tuple[str, str]]:
    """Yield what the views of a record's parts add to the case of the same build in a report."""
    for name, _ in places("part_views"):
        if name in record.parts:
            yield from view_of(name).facts(record)
