"""A suite of cases, each carried from plan to record, with what is done for a device that is lost on the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from device_runner.failures import Failure
from harness.base.plan import Plan
from harness.compile.artifacts.artifact import Built
from harness.compile.artifacts.pool import Builder
from harness.measure.context import Origin, Run
from harness.measure.loop import run_case
from harness.measure.progress import Progress, RunStep, SilentProgress
from harness.measure.recording import Stopped
from harness.measure.records.index import RecordIndex
from harness.measure.records.record import Record, RecordFile, ResumeKey


def run_suite(
    plans: Sequence[Plan],
    run: Run,
    builder: Builder,
    records: RecordFile | None = None,
    progress: Progress | None = None,
) -> Iterator[Record]:
    """Build everything, then run case by case, keeping each record before it is yielded."""
    progress = progress or SilentProgress()
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


def missing_plans(plans: Sequence[Plan], settled: Sequence[Record]) -> list[Plan]:
    """Return the plans that none of these records settles: what `--resume` still has to run."""
    known = {record.case for record in settled}
    return [plan for plan in plans if plan.case.id not in known]


def settled_by(plans: Sequence[Plan], origin: Origin, kept: RecordIndex) -> list[Record]:
    """Return the latest record of each plan that a new run would not add to, in the order of the plans.

    It is of this build and identity, and says something of its case. A quick look settles nothing but another one.
    """

    def latest(plan: Plan) -> Record | None:
        key = ResumeKey(plan.case.id, origin.identity.key, plan.compile.key, origin.as_shipped)
        return kept.settled(key) or (kept.settled(key._replace(quick=True)) if plan.budget.quick else None)

    runtime = origin.identity.runtime
    return [record for record in map(latest, plans) if record and record.identity.runtime == runtime]


def run_with_recovery(plan: Plan, built: Built, run: Run, progress: Progress) -> Record:
    """Carry one case to its record; while the device is lost, bring it back and try again.

    Afterwards `run.recovery.quarantine` says whether the device was given up. What the path itself does wrong is never
    tried again. Never raises for what the case or the device does wrong.
    """

    def attempt() -> tuple[Record, Failure | None]:
        recording = run_case(plan, built, run, progress)
        return recording.record, recording.lost

    def climbing(rung: str) -> None:
        progress.step(plan.case.id, f"{RunStep.DEVICE_LOST}: {rung}")

    record, steps = run.recovery.retry(attempt, run.rungs, climbing)
    return record.model_copy(update={"recovery": steps})
