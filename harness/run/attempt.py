"""One case, from plan to what is known of it: the only place that sees the whole way.

Correctness is judged before speed: a wrong answer gets no latency. A bundle carries this file and all that it imports
to machines on which only numpy is installed (`harness.bundle`), so what else it needs is imported where it is needed.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, TypeVar

from device_runner.device import Identity, Program, Session, Steadiness
from device_runner.failures import Failure, Unsupported
from harness.build.artifact import INPUTS, LABELLED, OTHER_OUTPUTS, OUTPUTS, RANGE, Answers, Artifact
from harness.build.oracle import load_arrays
from harness.build.value_range import beyond_half
from harness.cases.plan import Plan, no_half
from harness.probes.batches import Enqueued, enqueue
from harness.probes.labelled import classify
from harness.probes.latency import Timing
from harness.probes.reference import Reference, ReferenceKernel
from harness.run.context import Built, Run
from harness.run.correctness import judge
from harness.run.preparation import prepare_reference
from harness.run.progress import Progress, RunStep
from harness.run.recording import Recording
from harness.run.vacuous import vacuous

if TYPE_CHECKING:
    from harness.probes.sustained import Collected

T = TypeVar("T")


def attempted(plan: Plan, built: Built, run: Run, progress: Progress) -> Recording:
    """Carry one case to what becomes known of it. Never raises for what the case or the device does wrong."""
    case, timeout_s = plan.case, plan.budget.timeout_s
    with Recording.of(plan, run.origin) as recording:
        if plan.unsupported:
            raise Unsupported(plan.unsupported)
        artifact = recording.built(_expect(built[plan.compile.key], Artifact))
        if plan.untuned:
            from harness.run.scheduled import complaint_of, facts_of

            untuned = built[plan.untuned.key]
            schedules = facts_of(artifact, untuned, plan.schedules)
            recording.scheduled(schedules, complaint_of(schedules, untuned, run.made_by.get("tvm", "")))
        answers = _expect(built[plan.oracle.key], Answers)
        _require_support(artifact, run.device.identity)
        _require_room(artifact, run.device.identity)
        run.recovery.admit(run.rungs)
        inputs, expected, other = (load_arrays(answers.folder / name) for name in (INPUTS, OUTPUTS, OTHER_OUTPUTS))
        progress.step(case.id, RunStep.PREPARING)
        tuning = recording.prepared(run.tunings.prepare(case, artifact, run.device, inputs, timeout_s))
        kernel = prepare_reference(plan, built, run)
        with run.device.session(tuning.toggles, timeout_s=timeout_s) as session:
            progress.step(case.id, RunStep.LOADING)
            program = recording.loaded(session.load(artifact.loadable, timeout_s=timeout_s))
            tuning.use(program)
            progress.step(case.id, RunStep.FIRST_RUN)
            outputs = recording.ran(*program.run(inputs, timeout_s=timeout_s))
            tolerance = plan.relative_tolerance
            judged = judge(outputs, expected, tolerance)
            recording.judged(judged, lambda: vacuous(expected, other, tolerance), _out_of_range(plan, built))
            if (labelled := answers.folder / LABELLED).exists():
                recording.classified(classify(program, load_arrays(labelled), len(inputs[0]), timeout_s))
            emulated = recording.proved(tuning.proof(session))
            if run.timed and not emulated:
                progress.step(case.id, RunStep.SAMPLING)
                if recording.collected is None:
                    limits = plan.thermal_limits
                    times, steadiness = run.device.steadily(lambda: _times(program, session, plan, kernel, run), limits)
                    recording.measured(*times, steadiness)
                    recording.enqueued(_enqueued(program, plan, times[0]))
                    if run.watch:
                        run.watch(program, plan, artifact, times[0])
                else:
                    recording.sustained(_sustained(program, plan, run, recording.collected, progress))
    return recording


def _out_of_range(plan: Plan, built: Built) -> str:
    """Why no answer in half precision could be right; empty if one could, or if it is not known."""
    measured = built.get(plan.range.key) if plan.range else None
    return beyond_half(measured.folder / RANGE) if isinstance(measured, Answers) else ""


def _sustained(program: Program, plan: Plan, run: Run, into: Collected, progress: Progress) -> Steadiness:
    """Keep the case running from within the thermal limits on; what becomes of it then is what is asked for."""
    from harness.probes.sustained import sustain

    limits = plan.thermal_limits

    def tell(text: str) -> None:
        progress.step(plan.case.id, f"{RunStep.SAMPLING}: {text}")

    def work() -> None:
        sustain(program, plan.budget, run.device.pulses(limits), into, tell=tell)

    return run.device.steadily(work, limits)[1]


def _times(
    program: Program, session: Session, plan: Plan, kernel: ReferenceKernel | None, run: Run
) -> tuple[Timing, Reference | None]:
    return run.measure(program, plan.budget), kernel.measure(session) if kernel else None


def _enqueued(program: Program, plan: Plan, timing: Timing) -> Enqueued | None:
    """Of a case that was timed; the last that is done in a session, and what it takes is in no other number."""
    return None if plan.budget.quick else enqueue(program, plan.budget, median(timing.wall_ms))


def _expect(built: Artifact | Answers | Failure, kind: type[T]) -> T:
    if isinstance(built, Failure):
        raise built
    if not isinstance(built, kind):
        raise TypeError(f"expected {kind.__name__}, found {type(built).__name__}")
    return built


def _require_support(artifact: Artifact, identity: Identity) -> None:
    """Raise Unsupported if the device lacks what the library of a model in half precision needs.

    Cases in half precision were refused before they were built (`Plan.unsupported`). A device that does not say whether
    it has it is given the library to try.
    """
    kernels = artifact.compiled.facts.get("half_kernels", 0)
    own = bool(kernels) or any(dtype == "float16" for _, _, dtype in artifact.compiled.inputs)
    if own and (why := no_half(identity)):
        raise Unsupported(f"{why}, and the model itself is in half precision ({kernels} of its kernels)")


def _require_room(artifact: Artifact, identity: Identity) -> None:
    """Raise Unsupported if the device's memory cannot hold the weights and what is computed from them, by an estimate.

    The library has the weights, and the compiler has planned the memory of everything between. Nothing is pushed that
    can only end in a device that kills its processes one after the other.
    """
    needed = artifact.size_bytes + artifact.compiled.facts.get("storage_bytes", 0)
    if 0 < identity.memory_bytes < needed:
        raise Unsupported(
            f"the model takes about {needed / 1e9:.3g} GB of memory, and {identity.gpu or identity.serial} has "
            f"{identity.memory_bytes / 1e9:.3g} GB",
            hint="try it in half precision, with a smaller batch, or on another device",
        )
