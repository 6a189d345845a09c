"""What TVM made of a case that nothing runs."""

from __future__ import annotations

from dataclasses import dataclass

from device_runner.failures import Failure
from harness.base.case import Case
from harness.compile.artifacts.artifact import Artifact
from harness.measure.records.record import Releases


@dataclass(frozen=True)
class CompiledCase:
    """What TVM made of a case."""

    case: Case
    result: Artifact | Failure
    quirks: tuple[str, ...] = ()
    """Upstream defects that were worked around."""
    compiled_with: Releases | None = None
    """Releases that compiled it; None for the installed ones."""

    @property
    def artifact(self) -> str:
        """Key of the artifact; empty if there is none."""
        return "" if isinstance(self.result, Failure) else self.result.key
