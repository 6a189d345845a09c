"""The reference kernel: the same fixed work in every session, once as it is and once with 1.3 times the turns.

Its time has nothing to do with any model. If it moved between two runs, the rig moved; if the one with more turns does
not take longer, this rig cannot show that anything is slower. `harness.build.reference_kernel` makes the kernel.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from device_runner.failures import Failure
from harness.build.artifact import Artifact
from harness.build.reference_kernel import CRC
from harness.cases.plan import Plan
from harness.run.context import Built, Run

if TYPE_CHECKING:
    from device_runner.device import Array, Program, Session

TURNS = 8192
FACTOR = 1.3
"""How many times more turns the slowed one makes; docs/records.md says so of `slowed_ms`."""
SAMPLES = 6
"""Of each."""
ORDER = ((TURNS, SAMPLES // 2), (round(TURNS * FACTOR), SAMPLES), (TURNS, SAMPLES // 2))
"""Turns and samples: the slowed one lies in the middle, so that a drifting clock makes it no slower or faster."""
TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Reference:
    """Both times of the reference kernel in one session, by the device's timer, in ms."""

    reference: str
    """Which kernel: two sessions may be compared where this text is the same."""
    reference_ms: list[float]
    slowed_ms: list[float]


@dataclass(frozen=True)
class ReferenceKernel:
    """The kernel, made ready for a device."""

    artifact: Artifact
    binaries: Path
    """The device's own compilation of it, which would take longer than all samples."""

    def measure(self, session: Session) -> Reference | None:
        """Time it in a session that has done its case; None if that fails, which is not the case's fault."""
        ends = time.monotonic() + TIMEOUT_S
        try:
            program = session.load(self.artifact.loadable, timeout_s=TIMEOUT_S)
            program.use_binaries(self.binaries.read_bytes(), timeout_s=ends - time.monotonic())
            taken = [_samples(program, turns, count, ends) for turns, count in ORDER]
        except (Failure, OSError):
            return None
        before, slowed, after = taken
        return Reference(kernel_of(self.artifact), before + after, slowed)


def prepare_reference(plan: Plan, built: Built, run: Run) -> ReferenceKernel | None:
    """Make ready the kernel of a plan for a run that times; None if it was not built, or the device cannot."""
    artifact = built.get(plan.reference.key) if plan.reference and run.timed else None
    if not isinstance(artifact, Artifact) or CRC not in artifact.compiled.facts:
        return None
    try:
        inputs = [_input(TURNS)]
        binaries = run.tunings.tuned("opencl", artifact.key, run.device, artifact.loadable, inputs, TIMEOUT_S)
    except (Failure, OSError):
        return None
    return ReferenceKernel(artifact, binaries)


def _samples(program: Program, turns: int, count: int, ends: float) -> list[float]:
    program.run([_input(turns)], timeout_s=ends - time.monotonic())
    return program.device_ms(count, timeout_s=ends - time.monotonic())


def _input(turns: int) -> Array:
    import numpy as np

    return np.array([turns], np.int32)


def kernel_of(artifact: Artifact) -> str:
    """Text that is the same for the same kernel and turns."""
    return f"{artifact.compiled.facts[CRC]:08x}-{TURNS}"
