"""What a quirk is: a known defect of some TVM releases, how to find out whether it is still there, and its workaround.

A workaround is an edit of TVM's own ordered list of passes, so everything else stays as the release has it. When a pass
that it hangs on is gone, the edit fails loudly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from harness.cases.case import Precision
from harness.compiler.installed import release
from harness.compiler.passes import Passes

if TYPE_CHECKING:
    from harness.paths.clml.patterns import Match

Edit = Callable[[Passes], Passes]


class Presence(str, Enum):
    """What a probe found on the installed TVM."""

    PRESENT = "present"
    ABSENT = "absent"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class ProbeAnswer:
    """A probe's answer, with one line of what it saw."""

    state: Presence
    seen: str


@dataclass(frozen=True)
class Quirk:
    """A known defect. `since` and `until` are the first release that has it and the first that does not any more."""

    id: str
    title: str
    upstream: str
    """Where it can be read: file, issue or pull request of apache/tvm."""
    since: str
    paths: tuple[str, ...]
    probe: Callable[..., ProbeAnswer]
    """Takes the quirks whose workarounds are applied, none for TVM as it is. Cheap, but it may raise or crash, so
    `ask` runs it in a process of its own."""
    workaround: str
    """One line of what is done instead."""
    until: str = ""
    precisions: tuple[Precision, ...] = tuple(Precision)
    essential: bool = False
    """Without its workaround nothing that this path builds could run, so `--as-shipped` applies it too."""
    relax: Edit | None = None
    tir: Edit | None = None
    model: Callable[[Any], Any] | None = None
    """Edits the imported module, before it is given its precision."""
    veto: Callable[[Match], bool] | None = None
    """Path `clml`: whether what a pattern matched must stay on OpenCL all the same."""
    patterns: Callable[[], list[Any]] | None = None
    """Path `clml`: entries for the end of TVM's pattern table."""

    @property
    def releases(self) -> str:
        """The releases that have it, as a person would say it."""
        return f"{self.since} to before {self.until}" if self.until else f"{self.since} and later"

    def affects(self, tvm: str, path: str, precision: Precision) -> bool:
        """Whether this TVM release has it on this path and precision."""
        late_enough = release(tvm) >= release(self.since)
        early_enough = not self.until or release(tvm) < release(self.until)
        return late_enough and early_enough and path in self.paths and precision in self.precisions

    def edit_model(self, mod: Any) -> Any:
        """The imported module with the workaround."""
        return self.model(mod) if self.model else mod

    def edit_relax(self, passes: Passes) -> Passes:
        """The Relax passes with the workaround."""
        return self.relax(passes) if self.relax else passes

    def edit_tir(self, passes: Passes) -> Passes:
        """The TIR passes with the workaround."""
        return self.tir(passes) if self.tir else passes
