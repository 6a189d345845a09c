"""A case that is compiled for Adreno GPUs and not run: what TVM makes of it, and its record, without a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from device_runner.device import Identity
from device_runner.failures import Failure
from harness.base.case import Case
from harness.compile.artifacts.artifact import Artifact
from harness.measure.context import Origin
from harness.measure.progress import Progress
from harness.measure.recording import Recording
from harness.measure.records.record import NO_DEVICE, Record, Releases
from harness.measure.workbench import Request, open_to_build
from harness.tools.isa.code import CaseCode, MachineCode

KIND = "compiler"
"""Kind of the identity in such a record: no device has to do with it."""


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


def identity_of(compiler: str) -> Identity:
    """Who such records are of: a version of the compiler, so that another one starts another series."""
    return Identity(KIND, "mesa", driver=compiler)


def code_record(
    case: CompiledCase,
    codes: Sequence[MachineCode],
    refused: Failure | None,
    compiler: str,
    *,
    as_shipped: bool,
    run: str,
) -> Record:
    """Return the record of one case: `codes` are what the compiler of this version made of it, one for each GPU.

    `refused` is what it said of a kernel of which it made none. `ok` says that every kernel was compiled; nothing is
    said of its answer.
    """
    origin = Origin(NO_DEVICE, identity_of(compiler), as_shipped, run)
    with Recording(case.case, origin, artifact=case.artifact, quirks=case.quirks) as recording:
        recording.note(compiled_with=case.compiled_with, standalone=True)
        if isinstance(case.result, Failure):
            raise case.result
        recording.facts.add(case.result)
        recording.facts.add(CaseCode(tuple(codes)))
        if refused:
            raise refused
    return recording.record
