"""A suite on several devices: the loop between those who build, those who measure, and the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from device_runner.device import Identity
from device_runner.failures import DeviceLost, Failure
from device_runner.workers import SILENCE_S, Arrival, Loss, WorkerPool
from harness.base.plan import Plan
from harness.compile.artifacts.artifact import Answers, Artifact
from harness.compile.artifacts.pool import Builder
from harness.measure.context import Origin
from harness.measure.fleet.case_worker import Absence, CaseOrder, CaseResult, Return, Settings, StepChange
from harness.measure.fleet.work_queue import WorkItem, WorkQueue
from harness.measure.progress import Progress, on_device
from harness.measure.recording import Recording
from harness.measure.records.record import Record, RecordFile

WHILE_BUILDING_S = 0.05
"""How often it is looked whether something was built that a device waits for."""
OTHERWISE_S = 1.0

HOST_KINDS = ("virtual", "local")
"""Devices that compute on this host's cores: a compiler beside them would spoil their times."""


class Prefetcher:
    """Builds what the devices will need, while they measure, in the order in which it will be wanted.

    A context manager: leaving it drops what has not begun.
    """

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._futures: dict[str, Future[Artifact | Answers | Failure]] = {}

    def __enter__(self) -> Prefetcher:
        return self

    def __exit__(self, *_: object) -> None:
        for future in self._futures.values():
            future.cancel()

    def want(self, plans: Iterable[Plan]) -> None:
        """Build what these need, after what was wanted before."""
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
        """Return what a plan needs, by key. Raises what is nobody's fault but ours."""
        return {job.key: self._futures[job.key].result() for job in plan.jobs}


@dataclass(eq=False)
class FleetRun:
    """Spreads cases over devices: devices of one identity share its cases, each identity gets them all.

    While phones measure, this host builds ahead of them; if any of the devices is this host itself, everything is
    built first. Each case ends in one record for each identity, whatever happens to devices.
    """

    settings: Settings
    workers: WorkerPool
    builder: Builder
    plan: Callable[[Identity], Sequence[Plan]]
    records: RecordFile | None
    progress: Progress
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self._queue: WorkQueue[Plan] = WorkQueue()
        self._seen: dict[str, tuple[str, Identity]] = {}
        """The device that was opened last, by identity."""
        self._lost: dict[WorkItem[Plan], Record] = {}
        """The record of a case whose device was lost, if no other device takes the case."""
        self._away: dict[str, Failure] = {}
        """Devices that do not answer at the moment, by worker."""

    @property
    def failures(self) -> dict[str, Failure]:
        """Why devices were not, or are no longer, part of this."""
        return {self.workers.display_name(name): why for name, why in {**self.workers.lost, **self._away}.items()}

    def run(self) -> Iterator[Record]:
        """Run until every case has its record; each is kept before it is yielded."""
        with Prefetcher(self.builder) as prefetcher:
            while self.workers.opening or not self._queue.done:
                timeout_s = WHILE_BUILDING_S if prefetcher.busy else OTHERWISE_S
                for name, message in self.workers.hear(timeout_s):
                    yield from map(self._keep, self._take(name, message, prefetcher))
                if not self.workers.opening:
                    yield from map(self._keep, self._end_stranded())
                self._hand_out(prefetcher)

    def _keep(self, record: Record) -> Record:
        if self.records:
            self.records.append(record)
        self.progress.done(record)
        return record

    def _take(self, name: str, message: object, prefetcher: Prefetcher) -> Iterator[Record]:
        shown = self.workers.display_name(name)
        if isinstance(message, Arrival):
            self._seen[message.identity.key] = shown, message.identity
            self._join(name, message.identity, prefetcher)
        elif isinstance(message, StepChange):
            if task := self._queue.running(name):
                self.progress.step(on_device(task.work.case.id, shown), message.step)
        elif isinstance(message, CaseResult):
            yield from self._end_case(name, message)
        elif isinstance(message, Absence):
            if self._queue.running(name):
                return  # an order crossed it, and what that comes to says more
            self.say(f"{shown} does not answer any more: {message.why}")
            self._away[name] = DeviceLost(message.why)
            if self._queue.has_peer(name):  # without one, the next case brings it back or is lost
                self._queue.lose(name)
        elif isinstance(message, Return):
            self.say(f"{shown} answers again")
            self._away.pop(name, None)
            self._join(name, self.workers.identities[name], prefetcher)
        elif isinstance(message, Loss):
            yield from self._handle_loss(name, message.failure)

    def _join(self, name: str, identity: Identity, prefetcher: Prefetcher) -> None:
        def plans() -> Sequence[Plan]:
            made = self.plan(identity)
            self.progress.begin(len(made))
            prefetcher.want(made)
            return made

        self._queue.join(name, identity.key, plans)

    def _end_case(self, name: str, message: CaseResult) -> Iterator[Record]:
        task = self._queue.running(name)
        if task is None:
            return
        self._away.pop(name, None)
        if message.lost:
            self._away[name] = DeviceLost(message.lost)
        if not message.lost or not self._queue.has_peer(name):  # without a peer it goes on, in case it comes back
            self._queue.finish(name)
            yield message.record
            return
        self.say(f"{self.workers.display_name(name)} is given up until it answers again: {message.lost}")
        if self._queue.lose(name):
            yield message.record
        else:
            self._lost[task] = message.record

    def _handle_loss(self, name: str, failure: Failure) -> Iterator[Record]:
        self._away.pop(name, None)
        if task := self._queue.running(name):
            self._lost[task] = self._record_of_loss(task, failure)
        if ended := self._queue.lose(name):
            yield self._lost[ended]

    def _end_stranded(self) -> Iterator[Record]:
        for task in self._queue.strand():
            name, _ = self._seen[task.identity]
            nobody = DeviceLost(
                f"no device of identity {task.identity} is left", hint="`--resume` runs what is missing"
            )
            yield self._lost.get(task) or self._record_of_loss(task, self.failures.get(name, nobody))

    def _record_of_loss(self, task: WorkItem[Plan], failure: Failure) -> Record:
        """Return the record of a case whose device died in a way that left it none."""
        name, identity = self._seen[task.identity]
        origin = Origin(name, identity, self.settings.as_shipped, self.settings.run)
        with Recording.of(task.work, origin) as recording:
            raise DeviceLost(failure.message, hint=failure.hint, evidence=failure.evidence)
        return recording.record

    def _hand_out(self, prefetcher: Prefetcher) -> None:
        build_first = any(identity.kind in HOST_KINDS for identity in self.workers.identities.values())
        if build_first and (prefetcher.busy or self.workers.opening):
            return
        for name in self._queue.idle:
            if task := self._queue.assign(name, prefetcher.has):
                budget = task.work.budget
                patience_s = SILENCE_S + 4 * budget.timeout_s + budget.seconds + task.work.thermal_limits.wait_s
                self.workers.order(name, CaseOrder(task.work, prefetcher.results(task.work)), patience_s)
