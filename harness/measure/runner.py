"""A suite of cases on 1 to N devices, each case carried from plan to record, whatever happens to devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

from device_runner.device import Identity
from device_runner.failures import DeviceLost, Failure
from device_runner.workers import SILENCE_S, WorkerPool
from harness.base.plan import Plan
from harness.compile.artifacts.artifact import Answers, Artifact
from harness.compile.artifacts.pool import Builder
from harness.measure.case_worker import Absence, CaseOrder, CaseResult, DeviceState, OwnWorker, Return, StepChange
from harness.measure.context import Origin, Run
from harness.measure.device_queue import DeviceQueue, Lost, Order, WorkItem
from harness.measure.progress import Progress, SilentProgress, on_device
from harness.measure.recording import Recording, Stopped
from harness.measure.records.index import RecordIndex
from harness.measure.records.record import Record, RecordFile, ResumeKey

WHILE_BUILDING_S = 0.05
"""Seconds between checks for builds that a device waits for."""

HOST_KINDS = ("virtual", "local")
"""Devices that compute on this host's cores: a compiler would disturb their times."""


def run_suite(
    plans: Sequence[Plan],
    run: Run,
    builder: Builder,
    records: RecordFile | None = None,
    progress: Progress | None = None,
) -> Iterator[Record]:
    """Build everything, then run case by case on a device that we hold, keeping each record before it is yielded."""
    with own_suite(plans, run, builder, records, progress or SilentProgress()) as suite:
        yield from suite.run()


@contextmanager
def own_suite(
    plans: Sequence[Plan], run: Run, builder: Builder, records: RecordFile | None, progress: Progress
) -> Iterator[SuiteRun]:
    """Build everything, and yield a suite on a device that this process holds."""
    with (
        Prefetcher(builder) as prefetcher,
        WorkerPool([run.device.name], OwnWorker(run, progress), progress.say) as workers,
    ):
        prefetcher.build(plans)
        yield SuiteRun(workers, prefetcher, lambda _: plans, run.origin, records, progress)


def missing_plans(plans: Sequence[Plan], settled: Sequence[Record]) -> list[Plan]:
    """Return the plans that none of these records settles: what `--resume` still has to run."""
    cases = {record.case for record in settled}
    return [plan for plan in plans if plan.case.id not in cases]


def settled_by(plans: Sequence[Plan], origin: Origin, index: RecordIndex) -> list[Record]:
    """Return the latest record of each settled plan, in the order of the plans.

    It has the same build and identity, and an outcome that settles the case. A quick look settles only another one.
    """

    def latest(plan: Plan) -> Record | None:
        key = ResumeKey(plan.case.id, origin.identity.key, plan.compile.key, origin.as_shipped)
        return index.settled(key) or (index.settled(key._replace(quick=True)) if plan.budget.quick else None)

    runtime = origin.identity.runtime
    return [record for record in map(latest, plans) if record and record.identity.runtime == runtime]


class Prefetcher(AbstractContextManager["Prefetcher"]):
    """Builds what devices need, all at once or in the order in which it is wanted while they measure.

    A context manager: leaving it drops what has not begun.
    """

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._futures: dict[str, Future[Artifact | Answers | Failure]] = {}

    def __exit__(self, *_: object) -> None:
        for future in self._futures.values():
            future.cancel()

    def build(self, plans: Sequence[Plan]) -> None:
        """Build what these need, and wait for it."""
        for key, result in self._builder.build(job for plan in plans for job in plan.jobs).items():
            self._futures[key] = Future()
            self._futures[key].set_result(result)

    def want(self, plans: Iterable[Plan]) -> None:
        """Build what these need, after earlier requests."""
        for job in (job for plan in plans for job in plan.jobs):
            if job.key not in self._futures:
                self._futures[job.key] = self._builder.begin(job)

    @property
    def busy(self) -> bool:
        """Whether anything is still to be built."""
        return not all(future.done() for future in self._futures.values())

    def has(self, plan: Plan) -> bool:
        """Return whether all that a plan needs is there, or has failed."""
        return all(self._futures[job.key].done() for job in plan.jobs)

    def results(self, plan: Plan) -> dict[str, Artifact | Answers | Failure]:
        """Return what a plan needs, by key. Raises an internal error, not a failure of a build."""
        return {job.key: self._futures[job.key].result() for job in plan.jobs}


class SuiteRun(DeviceQueue[Plan, Record]):
    """Spreads cases over devices: devices of one identity share its cases, each identity gets them all.

    While phones measure, this host builds ahead of them; if any of the devices is this host itself, everything is
    built first. Each case ends in one record for each identity, whatever happens to devices.
    """

    def __init__(
        self,
        workers: WorkerPool,
        prefetcher: Prefetcher,
        plan: Callable[[Identity], Sequence[Plan]],
        origin: Origin,
        records: RecordFile | None,
        progress: Progress,
    ) -> None:
        """`origin` is that of all records but for the device, which may be any."""
        super().__init__(workers)
        self._prefetcher, self._plan, self._origin = prefetcher, plan, origin
        self._records, self._progress = records, progress
        self._seen: dict[str, tuple[str, Identity]] = {}
        """The device that was opened last, by identity."""
        self._away: dict[str, Failure] = {}
        """Devices that do not answer at the moment, by worker."""

    @property
    def failures(self) -> dict[str, Failure]:
        """Why devices are not part of this, by name."""
        return {self.workers.display_name(name): why for name, why in {**self._away, **self.workers.lost}.items()}

    def run(self) -> Iterator[Record]:
        """Run until every case has its record; each is kept before it is yielded."""
        try:
            yield from map(self._keep, super().run())
        except Stopped as early:
            self._keep(early.record)
            self._progress.say("stopped, and what was measured is kept: `adreno-bench sustained` shows it")
            raise early.__cause__ or early from None

    def _keep(self, record: Record) -> Record:
        if self._records:
            self._records.append(record)
        self._progress.done(record)
        return record

    @property
    def _wait_s(self) -> float:
        return WHILE_BUILDING_S if self._prefetcher.busy else self.WAIT_S

    def _join(self, name: str, identity: Identity) -> None:
        self._seen[identity.key] = self.workers.display_name(name), identity

        def plans() -> Sequence[Plan]:
            plans = self._plan(identity)
            self._progress.begin(len(plans))
            self._prefetcher.want(plans)
            return plans

        self.items.join(name, identity.key, plans)

    def _hand_out(self) -> None:
        build_first = any(identity.kind in HOST_KINDS for identity in self.workers.identities.values())
        if not build_first or not (self._prefetcher.busy or self.workers.opening):
            super()._hand_out()

    def _next_order(self, name: str) -> Order | None:
        if not (item := self.items.assign(name, self._prefetcher.has)):
            return None
        plan, budget = item.work, item.work.budget
        patience_s = SILENCE_S + 4 * budget.timeout_s + budget.seconds + plan.thermal_limits.wait_s
        return Order(CaseOrder(plan, self._prefetcher.results(plan)), patience_s)

    def _take(self, name: str, message: Any) -> Iterator[Record]:
        title, item = self.workers.display_name(name), self.items.running(name)
        if isinstance(message, StepChange) and item:
            self._progress.step(on_device(item.work.case.id, title), message.step)
        elif isinstance(message, DeviceState):
            self._progress.pulse(title, message.pulse)
        elif isinstance(message, CaseResult) and item:
            yield from self._end_case(name, message)
        elif isinstance(message, Absence) and not item:  # else an order crossed it, and its result says more
            self._progress.say(f"{title} does not answer any more: {message.why}")
            self._away[name] = DeviceLost(message.why)
            if self.items.has_peer(name):  # without one, the next case brings it back or is lost
                self.items.lose(name)
        elif isinstance(message, Return):
            self._progress.say(f"{title} answers again")
            self._away.pop(name, None)
            self._join(name, self.workers.identities[name])

    def _end_case(self, name: str, message: CaseResult) -> Iterator[Record]:
        self._away.pop(name, None)
        if message.lost:
            self._away[name] = DeviceLost(message.lost)
        if not message.lost or not self.items.has_peer(name):  # without a peer it goes on, in case it comes back
            self.items.finish(name)
            yield message.record
            return
        title = self.workers.display_name(name)
        self._progress.say(f"{title} is given up until it answers again: {message.lost}")
        if self.items.lose(name, message.record):
            yield message.record

    def _end(self, item: WorkItem[Plan], lost: Lost | None) -> Iterator[Record]:
        """Yield the record of a case whose devices are all lost, or died in a way that left it none."""
        if lost and isinstance(lost.why, Record):
            yield lost.why
            return
        name, identity = self._seen[item.identity]
        nobody = DeviceLost(f"no device of identity {item.identity} is left", hint="`--resume` runs what is missing")
        failure = lost.why if lost else self.failures.get(name, nobody)
        with Recording.of(item.work, replace(self._origin, device=name, identity=identity)) as recording:
            raise DeviceLost(failure.message, hint=failure.hint, evidence=failure.evidence)
        yield recording.record
