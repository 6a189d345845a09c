"""How a part of records is shown: what a tool adds to `run`, `show` and a report.

`Tool.part_views` names the place of a `PartView` for each such part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.base.tool import added, places

if TYPE_CHECKING:
    from harness.measure.records.record import Record


@dataclass(frozen=True)
class PartView:
    """Functions of records that have the part."""

    table: Callable[[Sequence[Record]], str] = lambda _: ""
    """Table for a terminal; empty for a part without a table of its own."""
    facts: Callable[[Record], Sequence[tuple[str, str]]] = lambda _: ()
    """Lines below the case of the same build in a report: names and values."""
    columns: Callable[[Record], Mapping[str, str]] = lambda _: {}
    """Cells for the table of runs, by the name of the column."""
    command: Callable[[Record], Sequence[str]] = lambda _: ()
    """Words of the command that measures it again, but for the device; none where `run --case` does."""
    instead: bool = False
    """Whether the table replaces that of runs."""


def view_of(part: str) -> PartView:
    """Return the view of a part that a tool has one for."""
    view: PartView = added("part_views", part)[0]
    return view


def views_of(record: Record) -> Iterator[PartView]:
    """Yield the views of a record's parts."""
    return (view_of(name) for name, _ in places("part_views") if name in record.parts)


def part_columns(record: Record) -> dict[str, str]:
    """Return the cells that the views of a record's parts add to the table of runs."""
    return {name: text for view in views_of(record) for name, text in view.columns(record).items()}


def part_facts(record: Record) -> Iterator[tuple[str, str]]:
    """Yield what the views of a record's parts add to the case of the same build in a report."""
    for view in views_of(record):
        yield from view.facts(record)
