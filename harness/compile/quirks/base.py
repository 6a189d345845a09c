"""What a quirk is: a known defect of some TVM releases, and its workaround."""

from __future__ import annotations

from dataclasses import dataclass

from harness.base.case import Precision
from harness.compile.compiler.releases import release
from harness.compile.paths.base import NO_EDITS, Edits


@dataclass(frozen=True)
class Quirk:
    """A known defect. `since` and `until` are the first release that has it and the first that does not any more."""

    id: str
    title: str
    """What goes wrong."""
    upstream: str
    """Place of the defect: file, issue or pull request of apache/tvm."""
    workaround: str
    """One line of what is done instead."""
    paths: tuple[str, ...] = ("opencl", "texture", "clml")
    """Those that have it; all that reach an Adreno unless it says which."""
    edits: Edits = NO_EDITS
    """The workaround, as the paths apply it; empty where it is part of how the paths always build."""
    since: str = "0.25"
    until: str = ""
    precisions: tuple[Precision, ...] = tuple(Precision)
    essential: bool = False
    """Whether nothing on this path runs without the workaround. `--as-shipped` applies it, too."""

    @property
    def releases(self) -> str:
        """The releases that have it, as a person would say it."""
        return f"{self.since} to before {self.until}" if self.until else f"{self.since} and later"

    def affects(self, tvm: str, path: str, precision: Precision) -> bool:
        """Return whether this TVM release has it on this path and precision."""
        late_enough = release(tvm) >= release(self.since)
        early_enough = not self.until or release(tvm) < release(self.until)
        return late_enough and early_enough and path in self.paths and precision in self.precisions
