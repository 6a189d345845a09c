"""Measures a profile: like a run of the case, but its kernels are watched instead of sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from device_runner.failures import Failure, Unsupported
from harness.build.artifact import INPUTS, KERNELS, OUTPUTS, Answers, Artifact
from harness.build.oracle import load_arrays
from harness.compiler.installed import tvm_version
from harness.compiler.work import Work
from harness.failures import UsageError
from harness.probes.batches import Batches, enqueue
from harness.profile.profile import NS_DIGITS, Peaks, Profile, ms_of, operators_of, span_ms
from harness.run.correctness import compare_answers
from harness.run.progress import RunStep

if TYPE_CHECKING:
    from device_runner.device import Launch, Program
    from harness.build.artifact import Built
    from harness.cases.plan import Plan
    from harness.run.context import Origin
    from harness.run.progress import Progress
    from harness.workbench import Workbench

WALL_SAMPLES = 20


@dataclass(frozen=True)
class Watched:
    """A profile, and the launches that it is made of."""

    profile: Profile
    inferences: Sequence[Sequence[Launch]]


def watch(bench: Workbench, repeat: int, peaks: Peaks, progress: Progress) -> list[Watched]:
    """A profile of each case of the workbench. Raises the first failure; UsageError of a case that is wrong."""
    built = bench.builder.build(job for plan in bench.plans for job in plan.jobs)
    return [_watch(plan, built, bench, repeat, peaks, progress) for plan in bench.plans]


def _watch(plan: Plan, built: Built, bench: Workbench, repeat: int, peaks: Peaks, progress: Progress) -> Watched:
    if plan.unsupported:
        raise Unsupported(plan.unsupported)
    artifact, answers = built[plan.compile.key], built[plan.oracle.key]
    for made in (artifact, answers):
        if isinstance(made, Failure):
            raise made
    assert isinstance(artifact, Artifact)
    assert isinstance(answers, Answers)
    run, timeout_s = bench.run, plan.budget.timeout_s
    inputs, expected = (load_arrays(answers.folder / name) for name in (INPUTS, OUTPUTS))
    tuning = run.tunings.prepare(plan.case, artifact, run.device, inputs, timeout_s)
    with run.device.session(tuning.toggles, timeout_s=timeout_s) as session:
        progress.step(plan.case.id, RunStep.LOADING)
        program = session.load(artifact.loadable, timeout_s=timeout_s)
        tuning.use(program)
        progress.step(plan.case.id, RunStep.FIRST_RUN)
        outputs, _ = program.run(inputs, timeout_s=timeout_s)
        judged = compare_answers(outputs, expected, plan.relative_tolerance)
        if not judged.right:
            hint = f"`adreno-bench run --case {plan.case.id}`, then `adreno-bench show --diverge`"
            raise UsageError(f"{plan.case.id} is wrong, and a wrong answer is not worth its time", hint=hint)
        progress.step(plan.case.id, RunStep.SAMPLING)
        inferences, wall_ms = _times(program, repeat, timeout_s)
        enqueued = enqueue(program, plan.budget, wall_ms)
    profile = profile_of(plan, artifact, run.origin, inferences, wall_ms, peaks, enqueued)
    return Watched(profile, inferences)


def _times(program: Program, repeat: int, timeout_s: float) -> tuple[list[list[Launch]], float]:
    program.device_ms(repeat, timeout_s=timeout_s)  # to warm up
    wall_ms = median(program.wall_ms(WALL_SAMPLES, timeout_s=timeout_s))
    return program.launches(repeat, timeout_s=timeout_s), wall_ms


def profile_of(
    plan: Plan,
    artifact: Artifact,
    origin: Origin,
    inferences: Sequence[Sequence[Launch]],
    wall_ms: float,
    peaks: Peaks,
    enqueued: Batches | None = None,
) -> Profile:
    """The profile of a case whose inferences were watched. Raises UsageError if they launch nothing."""
    if not any(inferences):
        raise UsageError(f"{plan.case.id} launches no kernels", hint="where CLML took all of it, there are none to see")
    work = [Work(**one) for one in artifact.compiled.work or ()]
    operators = operators_of(inferences, work, _source(artifact))
    identity = origin.identity
    return Profile(
        case=plan.case.id,
        identity_key=identity.key,
        gpu=identity.gpu or identity.serial,
        tvm=tvm_version(),
        artifact=artifact.key,
        as_shipped=origin.as_shipped,
        operators=operators,
        kernels_ms=round(median(sum(map(ms_of, one)) for one in inferences), NS_DIGITS),
        span_ms=median(map(span_ms, inferences)),
        wall_ms=wall_ms,
        peaks=peaks,
        batch=enqueued.batch if enqueued else None,
        batched_ms=tuple(enqueued.batched_ms) if enqueued else (),
        synced_ms=tuple(enqueued.synced_ms) if enqueued else (),
    )


def _source(artifact: Artifact) -> str:
    """All that the device compiles; empty in what was built before this was kept."""
    file = artifact.loadable.library.with_name(KERNELS)
    return file.read_text(encoding="utf-8") if file.exists() else ""
