"""What a device is prepared with before a case is measured on it, each in a session of its own and once."""

from __future__ import annotations

from device_runner.failures import Failure
from harness.build.artifact import Artifact
from harness.build.reference_kernel import CRC
from harness.cases.plan import Plan
from harness.probes.reference import TIMEOUT_S, TURNS, ReferenceKernel, find_turns, input_of, turns_in
from harness.run.context import Built, Run


def prepare_reference(plan: Plan, built: Built, run: Run) -> ReferenceKernel | None:
    """Make ready the kernel of a plan for a run that times; None if it was not built, or the device cannot."""
    artifact = built.get(plan.reference.key) if plan.reference and run.timed else None
    if not isinstance(artifact, Artifact) or CRC not in artifact.compiled.facts:
        return None
    try:
        inputs = [input_of(TURNS)]
        binaries = run.tunings.tuned("opencl", artifact.key, run.device, artifact.loadable, inputs, TIMEOUT_S)
        source = f"{artifact.compiled.facts[CRC]:08x}"  # which releases share, so that they share the turns, too
        turns = run.tunings.kept(
            "reference turns", source, run.device, lambda: find_turns(run.device, artifact, binaries)
        )
        return ReferenceKernel(artifact, binaries, turns_in(turns))
    except (Failure, OSError):
        return None
