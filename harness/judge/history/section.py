"""What a tool adds to a history: notes on cases, a line on what moved, and pages of its own.

A tool names a place under `history` in its `page_sections`: a function of a `HistoryView` that returns a
`HistorySection`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.base.tool import added
from harness.judge.history.events import Event
from harness.judge.history.results import History, Series
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
    """Tooltip of the text."""
    subject: str = ""
    """Subject in the summary: the case and what distinguishes it from others."""
    moved: Verdict | None = None
    """The verdict on its last change, if that was lately."""
    change: str = ""
    """What changed, and between which commits."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The same for programs."""


@dataclass(frozen=True)
class HistoryView:
    """A history, as a tool gets it."""

    results: Path
    """The folder, in which a tool's own files lie beside those of asv."""
    history: History
    moved: Sequence[Event]
    summary: bool = False
    """Whether only the summary is wanted, without pages."""


@dataclass(frozen=True)
class SectionPage:
    """A page of the site."""

    file: str
    title: str
    template: str
    """A template of the tool's package that extends `site.html.j2`."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What the template needs beside the facts of the site."""
    in_menu: bool = False
    scripts: Sequence[str] = ()
    """Files of scripts that it needs, of those beside the pages."""


@dataclass(frozen=True)
class HistorySection:
    """All that one tool adds."""

    name: str = ""
    """Key of the notes' facts in JSON; empty of a tool without notes."""
    notes: tuple[Note, ...] = ()
    closing: str = ""
    """Last sentence in the summary."""
    remark: Callable[[Event], str] = lambda _event: ""
    """Returns a line on what moved, or nothing."""
    link: Callable[[Series], str] = lambda _series: ""
    """Returns the file of a series' page, or nothing."""
    link_text: str = ""
    """Text of that link."""
    package: str = ""
    """Package that has the templates."""
    pages: tuple[SectionPage, ...] = ()

    def of_case(self, machine: str, case: str) -> Iterator[Note]:
        """Yield the notes on a case of a machine."""
        return (note for note in self.notes if (note.machine, note.case) == (machine, case))


MakeSection = Callable[[HistoryView], HistorySection]


def load_sections(view: HistoryView) -> list[HistorySection]:
    """Return what tools add to a history."""
    makers: list[MakeSection] = added("page_sections", PAGE)
    return [make(view) for make in makers]
