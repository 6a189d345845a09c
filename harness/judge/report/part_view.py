"""How a part of records is shown: what a tool adds to `run`, `show` and a report.

`Tool.part_views` names the place of a `PartView` for each such part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from device_runner.names import load
from harness.base.tool import places
from harness.judge.report.table import results_table

if TYPE_CHECKING:
    from harness.measure.records.record import Record


@dataclass(frozen=True)
class PartView:
    """Functions of records that have the part."""

    table: Callable[[Sequence[Record]], str]
    """What a terminal gets."""
    facts: Callable[[Record], Sequence[tuple[str, str]]]
    """Lines below the case of the same build in a report: names and values."""
    instead: bool = False
    """Whether the table stands in place of that of runs."""


def view_of(part: str) -> PartView:
    """Return the view of a part. Raises KeyError if no tool has one."""
    view: PartView = load(dict(places("part_views"))[part])
    return view


def run_tables(records: Sequence[Record]) -> str:
    """Return the tables of a run: the usual one, and those of parts that have their own."""
    views = {name: view for name, _ in places("part_views") if (view := view_of(name)).instead}
    others = [record for record in records if not views.keys() & record.parts.keys()]
    texts = [results_table(others)] if others or not records else []
    for name, view in views.items():
        texts += [view.table(own)] if (own := [record for record in records if name in record.parts]) else []
    return "\n\n".join(texts)


def part_facts(record: Record) -> Iterator[tuple[str, str]]:
    """Yield what the views of a record's parts add to the case of the same build in a report."""
    for name, _ in places("part_views"):
        if name in record.parts:
            yield from view_of(name).facts(record)
