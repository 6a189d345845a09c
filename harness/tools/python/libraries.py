"""Libraries that `adreno_bench.build` compiled, for programs of one's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from device_runner.failures import Failure
from harness.base.outcome import Outcome
from harness.compile.artifacts.artifact import Artifact
from harness.measure.workbench import PlannedRequest


@dataclass(frozen=True)
class Library:
    """A case and its compiled library.

    TVM's runtime runs it: `relax.VirtualMachine(tvm.runtime.load_module(str(file)), [tvm.device("opencl")] * devices)`.
    """

    case: str
    """Id of the case."""
    file: Path | None
    """Shared library with weights and kernels; None if the case does not compile."""
    devices: int
    """How often TVM's virtual machine wants the OpenCL device: once for each kind of its memory."""
    quirks: tuple[str, ...]
    """Defects of TVM that are worked around in it."""
    outcome: str
    """`ok`, or why there is no library: `compile-error` and others."""
    message: str = ""
    """What the compiler said, if there is none."""


def libraries_of(bench: PlannedRequest) -> Iterator[Library]:
    """Build the plans, and yield what each became."""
    built = bench.builder.build([plan.compile for plan in bench.plans])
    for plan in bench.plans:
        result, quirks = built[plan.compile.key], tuple(plan.quirks)
        if isinstance(result, Artifact):
            loadable = result.loadable
            yield Library(plan.case.id, loadable.library, loadable.vdevices, quirks, Outcome.OK.value)
        elif isinstance(result, Failure):
            yield Library(plan.case.id, None, 0, quirks, result.outcome, result.message)
