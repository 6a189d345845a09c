"""The record of a case that was compiled for Adreno GPUs and not run: its machine code, and no time."""

from __future__ import annotations

from collections.abc import Sequence

from device_runner.device import Identity
from device_runner.failures import Failure
from harness.measure.context import Origin
from harness.measure.recording import Recording
from harness.measure.records.record import NO_DEVICE, Record
from harness.tools.isa.build import CompiledCase
from harness.tools.isa.code import CaseCode, MachineCode

KIND = "compiler"
"""Kind of the identity in such a record: no device has to do with it."""


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
