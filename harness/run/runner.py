"""One case, from plan to record: the only place that sees the whole way.

Correctness is judged before speed: a wrong answer gets no latency.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from device_runner.device import Identity, Program, Session, Steadiness
from device_runner.failures import Failure, Unsupported
from harness.build.artifact import INPUTS, LABELLED, OTHER_OUTPUTS, OUTPUTS, RANGE, Answers, Artifact
from harness.build.oracle import load_arrays
from harness.build.planner import no_half
from harness.build.pool import Builder
from harness.build.value_range import beyond_half
from harness.cases.plan import Plan
from harness.run.context import Built, Origin, Run
from harness.run.correctness import judge
from harness.run.progress import Progress, RunStep, Silent
from harness.run.record import Record, RecordFile, ResumeKey
from harness.run.record_index import RecordIndex
from harness.run.recording import Recording, Stopped
from harness.run.reference import Reference, ReferenceKernel, prepare_reference
from harness.run.scheduled import complaint_of, facts_of
from harness.run.sustained import Collected, sustain
from harness.run.timing import Timing, measure
from harness.run.top_one import classify
from harness.run.vacuous import vacuous

T = TypeVar("T")


def run_suite(
    plans: Sequence[Plan],
    run: Run,
    builder: Builder,
    records: RecordFile | None = None,
    progress: Progress | None = None,
) -> Iterator[Record]:
    """Build everything, then run case by case, keeping each record before it is yielded."""
    progress = progress or Silent()
    built = builder.build(job for plan in plans for job in plan.jobs)
    progress.begin(len(plans))
    for plan in plans:
        stopped: Stopped | None = None
        try:
            record = run_with_recovery(plan, built, run, progress)
        except Stopped as early:
            record, stopped = early.record, early
        if records:
            records.append(record)
        progress.done(record)
        if stopped:
            progress.say("stopped, and what was measured is kept: `adreno-bench show --sustained` shows it")
            raise stopped.__cause__ or stopped
        yield record


def missing(plans: Sequence[Plan], settled: Sequence[Record]) -> list[Plan]:
    """The plans that none of these records settles: what `--resume` still has to run."""
    known = {record.case for record in settled}
    return [plan for plan in plans if plan.case.id not in known]


def settled_by(plans: Sequence[Plan], origin: Origin, kept: RecordIndex) -> list[Record]:
    """The latest kept record of each plan that running again would tell nothing new of, in the order of the plans.

    It is of this build and identity, and says something of its case. A quick look settles nothing but another one.
    """

    def found(plan: Plan) -> Record | None:
        key = ResumeKey(plan.case.id, origin.identity.key, plan.compile.key, origin.as_shipped)
        return kept.settled(key) or (kept.settled(key._replace(quick=True)) if plan.budget.quick else None)

    runtime = origin.identity.runtime
    return [record for record in map(found, plans) if record and record.identity.runtime == runtime]


def run_with_recovery(plan: Plan, built: Built, run: Run, progress: Progress) -> Record:
    """Carry one case to its record; while the device is lost, bring it back and try again.

    Afterwards `run.recovery.quarantine` says whether the device was given up. What the path itself does wrong is never
    tried again. Never raises for what the case or the device does wrong.
    """

    def attempt() -> tuple[Record, Failure | None]:
        recording = _attempt(plan, built, run, progress)
        return recording.record, recording.lost

    def climbing(rung: str) -> None:
        progress.step(plan.case.id, f"{RunStep.DEVICE_LOST}: {rung}")

    record, steps = run.recovery.retry(attempt, run.rungs, climbing)
    return record.model_copy(update={"recovery": steps})


def run_case(plan: Plan, built: Built, run: Run, progress: Progress) -> Record:
    """Carry one case from its artifact to its record, in one attempt."""
    return _attempt(plan, built, run, progress).record


def _attempt(plan: Plan, built: Built, run: Run, progress: Progress) -> Recording:
    case, timeout_s = plan.case, plan.budget.timeout_s
    with Recording.of(plan, run.origin) as recording:
        if plan.unsupported:
            raise Unsupported(plan.unsupported)
        artifact = recording.built(_expect(built[plan.compile.key], Artifact))
        if plan.untuned:
            untuned = built[plan.untuned.key]
            schedules = facts_of(artifact, untuned, plan.schedules)
            recording.scheduled(schedules, complaint_of(schedules, untuned))
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
                    times, steadiness = run.device.steadily(lambda: _times(program, session, plan, kernel), limits)
                    recording.measured(*times, steadiness)
                else:
                    recording.sustained(_sustained(program, plan, run, recording.collected, progress))
    return recording


def _out_of_range(plan: Plan, built: Built) -> str:
    """Why no answer in half precision could be right; empty if one could, or if it is not known."""
    measured = built.get(plan.range.key) if plan.range else None
    return beyond_half(measured.folder / RANGE) if isinstance(measured, Answers) else ""


def _sustained(program: Program, plan: Plan, run: Run, into: Collected, progress: Progress) -> Steadiness:
    """Keep the case running from within the thermal limits on; what becomes of it then is what is asked for."""
    limits = plan.thermal_limits

    def tell(text: str) -> None:
        progress.step(plan.case.id, f"{RunStep.SAMPLING}: {text}")

    def work() -> None:
        sustain(program, plan.budget, run.device.pulses(limits), into, tell=tell)

    return run.device.steadily(work, limits)[1]


def _times(
    program: Program, session: Session, plan: Plan, kernel: ReferenceKernel | None
) -> tuple[Timing, Reference | None]:
    return measure(program, plan.budget), kernel.measure(session) if kernel else None


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
