"""Compiling for machine code: what TVM made of a case that nothing runs."""

from __future__ import annotations

from dataclasses import dataclass

from device_runner.failures import Failure
from harness.base.case import Case
from harness.compile.artifacts.artifact import Artifact
from harness.measure.progress import Progress
from harness.measure.records.record import Releases
from harness.measure.workbench import Request, open_to_build


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


def build_only(request: Request, words: str, progress: Progress) -> list[CompiledCase]:
    """Return TVM's build of each case, for a device that is only asked for its limits, or for none."""
    with open_to_build(request, words, progress) as drawn:
        results = drawn.builder.build(plan.compile for plan in drawn.plans)
    pairs = [(plan, results[plan.compile.key]) for plan in drawn.plans]
    return [
        CompiledCase(plan.case, result, plan.quirks)
        for plan, result in pairs
        if isinstance(result, (Artifact, Failure))
    ]
