"""What happens before the measured session of a case: what was built is opened, and the device is prepared.

Preparing opens sessions of its own, each once for as long as what it made is kept: a tuned case gets its tuning cache,
and each device the number of turns that makes the reference kernel last long enough. Who the device is was asked when
it was opened (`device_runner.registry.identify`).
"""

from __future__ import annotations

from functools import partial

from device_runner.failures import Failure
from harness.base.plan import Plan
from harness.compile.artifacts.artifact import CRC, Artifact, Built
from harness.measure.context import Run
from harness.measure.probes.base import Step, no_step
from harness.measure.probes.reference import TIMEOUT_S, TURNS, ReferenceKernel, find_turns, input_of, turns_in
from harness.measure.progress import RunStep
from harness.measure.work import Preparation, Work


def prepare(work: Work, run: Run, step: Step) -> Preparation:
    """Prepare the device for a case: its tuning cache, and the reference kernel of a run that times.

    Raises what the device raises, and RigFailure if what was kept is damaged.
    """
    plan = work.plan
    step(RunStep.PREPARING)
    tuning = partial(step, f"{RunStep.PREPARING}, step 1 of 3: tuning session")
    cache = run.tunings.prepare(plan.case, work.artifact, run.device, work.truth.inputs, plan.budget.timeout_s, tuning)
    return Preparation(cache, prepare_reference(plan, work.built, run, step) if run.timed else None)


def prepare_reference(plan: Plan, built: Built, run: Run, step: Step = no_step) -> ReferenceKernel | None:
    """Make ready the reference kernel of a plan; None if it was not built, or the device cannot."""
    artifact = built.get(plan.reference.key) if plan.reference else None
    if not isinstance(artifact, Artifact) or CRC not in artifact.compiled.facts:
        return None
    compiling = partial(step, f"{RunStep.PREPARING}, step 2 of 3: compiling the reference kernel")
    try:
        binaries = run.tunings.find_or_tune("opencl", artifact, run.device, [input_of(TURNS)], TIMEOUT_S, compiling)
        source = f"{artifact.compiled.facts[CRC]:08x}"  # which releases share, so that they share the turns, too

        def find() -> bytes:
            step(f"{RunStep.PREPARING}, step 3 of 3: choosing the length of the reference kernel")
            return find_turns(run.device, artifact, binaries)

        return ReferenceKernel(
            artifact, binaries, turns_in(run.tunings.find_or_make("reference turns", source, run.device, find))
        )
    except (Failure, OSError):
        return None
