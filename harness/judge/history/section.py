"""What a tool adds to a history: notes on cases, on the pages, in the summary and in its JSON.

A tool names a place under `history` in its `page_sections`: a function of the folder of results and of the commits of
each machine, in order, that returns a `HistorySection`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.base.tool import load, places
from harness.judge.verdict import Verdict

PAGE = "history"


@dataclass(frozen=True)
class Note:
    """One line on a case of a machine, at the newest commit that has it."""

    machine: str
    case: str
    text: str
    """Shown below the case's latency."""
    title: str = ""
    """Shown for who points at the text."""
    subject: str = ""
    """What moved, in the summary: the case and what else tells it from others."""
    moved: Verdict | None = None
    """The verdict on its last change, if that was lately."""
    change: str = ""
    """What changed, and between which commits."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The same for programs."""


@dataclass(frozen=True)
class HistorySection:
    """All that one tool adds."""

    name: str
    """Key of the notes' facts in JSON."""
    notes: tuple[Note, ...] = ()
    closing: str = ""
    """Last sentence in the summary."""

    def of_case(self, machine: str, case: str) -> Iterator[Note]:
        """Yield the notes on a case of a machine."""
        return (note for note in self.notes if (note.machine, note.case) == (machine, case))


MakeSection = Callable[[Path, Mapping[str, Sequence[str]]], HistorySection]


def load_sections(results: Path, commits: Mapping[str, Sequence[str]]) -> list[HistorySection]:
    """Return what tools add to the history of a folder of results; `commits` are those of each machine, in order."""
    makers: list[MakeSection] = [load(place) for page, place in places("page_sections") if page == PAGE]
    return [make(results, commits) for make in makers]
