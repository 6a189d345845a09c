"""A suite on several devices: the loop between those who build, those who measure, and the records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from device_runner.device import Identity
from device_runner.failures import DeviceLost, Failure
from harness.build.pool import Builder
from harness.cases.plan import Plan
from harness.fleet.messages import Away, Back, CaseDone, Message, Opened, Orders, RunCase, Said, Stepped
from harness.fleet.prefetcher import Prefetcher
from harness.fleet.task_queue import Task, TaskQueue
from harness.fleet.worker_pool import WorkerPool
from harness.run.context import Origin
from harness.run.progress import Progress, on_device
from harness.run.record import Record, RecordFile
from harness.run.recording import Recording

WHILE_BUILDING_S = 0.05
"""How often it is looked whether something was built that a device waits for."""
OTHERWISE_S = 1.0

SILENCE_S = 900.0
"""More than opening a device or bringing it back may take. A worker that says nothing for so long beyond the deadlines
of its case hangs in a way that none of them caught."""

HOST_KINDS = ("virtual", "local")
"""Devices that compute on this host's cores: a compiler beside them would spoil their times."""


@dataclass
class _Member:
    """One device, as the run sees it."""

    name: str
    """As people know it; at first that of its worker, which may not know yet what it will get."""
    identity: Identity | None = None
    heard: float = field(default_factory=time.monotonic)
    patience_s: float = SILENCE_S


class FleetRun:
    """Spreads cases over devices: devices of one identity share its cases, each identity gets them all.

    While phones measure, this host builds ahead of them; if any of the devices is this host itself, everything is
    built first. Each case ends in one record for each identity, whatever happens to devices.
    """

    def __init__(
        self,
        orders: Orders,
        workers: WorkerPool,
        builder: Builder,
        plan: Callable[[Identity], Sequence[Plan]],
        records: RecordFile | None,
        progress: Progress,
        say: Callable[[str], None],
    ) -> None:
        self._orders = orders
        self._workers = workers
        self._builder = builder
        self._plan = plan
        self._records = records
        self._progress = progress
        self._say = say
        self._queue: TaskQueue[Plan] = TaskQueue()
        self._members: dict[str, _Member] = {}
        self._seen: dict[str, tuple[str, Identity]] = {}
        """By identity, the device that was last opened."""
        self._lost: dict[Task[Plan], Record] = {}
        """Of a case whose device was lost: the record that it gets if no other device takes it."""
        self._away: dict[str, Failure] = {}
        """Of devices that do not answer at the moment, by worker."""
        self.failures: dict[str, Failure] = {}
        """Why devices were not, or were at the end no longer, part of this."""

    def run(self, names: Sequence[str]) -> Iterator[Record]:
        """Run until every case has its record; each is kept before it is yielded."""
        self._members = {name: _Member(name) for name in names}
        with Prefetcher(self._builder) as prefetcher:
            while self._opening or not self._queue.done:
                timeout_s = WHILE_BUILDING_S if prefetcher.busy else OTHERWISE_S
                for name, message in self._workers.hear(timeout_s):
                    yield from map(self._kept, self._heard(name, message, prefetcher))
                self._give_up_the_silent()
                if not self._opening:
                    yield from map(self._kept, self._stranded())
                self._hand_out(prefetcher)
        self.failures.update((self._members[name].name, why) for name, why in self._away.items())

    @property
    def _opening(self) -> list[str]:
        return [name for name, member in self._members.items() if member.identity is None]

    def _kept(self, record: Record) -> Record:
        if self._records:
            self._records.append(record)
        self._progress.done(record)
        return record

    def _heard(self, name: str, message: Message, prefetcher: Prefetcher) -> Iterator[Record]:
        member = self._members.get(name)
        if member is None:
            return  # it was given up
        member.heard = time.monotonic()
        if isinstance(message, Said):
            self._say(f"{member.name}: {message.text}")
        elif isinstance(message, Opened):
            member.name, member.identity = message.name, message.identity
            self._seen[message.identity.key] = message.name, message.identity
            self._join(name, message.identity, prefetcher)
        elif isinstance(message, Stepped):
            if task := self._queue.running(name):
                self._progress.step(on_device(task.work.case.id, member.name), message.step)
        elif isinstance(message, CaseDone):
            yield from self._case_done(name, message)
        elif isinstance(message, Away):
            if self._queue.running(name):
                return  # an order crossed it, and what that comes to says more
            self._say(f"{member.name} does not answer any more: {message.why}")
            self._away[name] = DeviceLost(message.why)
            if self._queue.has_peer(name):  # without one, the next case brings it back or is lost
                self._queue.lose(name)
        elif isinstance(message, Back):
            self._say(f"{member.name} answers again")
            self._away.pop(name, None)
            assert member.identity
            self._join(name, member.identity, prefetcher)
        else:
            yield from self._gone(name, message.failure)

    def _join(self, name: str, identity: Identity, prefetcher: Prefetcher) -> None:
        def plans() -> Sequence[Plan]:
            made = self._plan(identity)
            self._progress.begin(len(made))
            prefetcher.want(made)
            return made

        self._queue.join(name, identity.key, plans)

    def _case_done(self, name: str, message: CaseDone) -> Iterator[Record]:
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
        self._say(f"{self._members[name].name} is given up until it answers again: {message.lost}")
        if self._queue.lose(name):
            yield message.record
        else:
            self._lost[task] = message.record

    def _gone(self, name: str, failure: Failure) -> Iterator[Record]:
        self._workers.dismiss(name)
        shown = self._members.pop(name).name
        self._away.pop(name, None)
        self._say(f"{shown} is out: {failure}")
        self.failures[shown] = failure
        if task := self._queue.running(name):
            self._lost[task] = self._record_of_loss(task, failure)
        if ended := self._queue.lose(name):
            yield self._lost[ended]

    def _give_up_the_silent(self) -> None:
        now = time.monotonic()
        for name, member in self._members.items():
            working = member.identity is None or self._queue.running(name)
            if working and now - member.heard > member.patience_s:
                self._workers.kill(name)  # its death is heard like any other

    def _stranded(self) -> Iterator[Record]:
        for task in self._queue.strand():
            name, _ = self._seen[task.identity]
            nobody = DeviceLost(
                f"no device of identity {task.identity} is left", hint="`--resume` runs what is missing"
            )
            yield self._lost.get(task) or self._record_of_loss(task, self.failures.get(name, nobody))

    def _record_of_loss(self, task: Task[Plan], failure: Failure) -> Record:
        """The record of a case whose device died in a way that left it none."""
        name, identity = self._seen[task.identity]
        origin = Origin(name, identity, self._orders.as_shipped, self._orders.run)
        with Recording.of(task.work, origin) as recording:
            raise DeviceLost(failure.message, hint=failure.hint, evidence=failure.evidence)
        return recording.record

    def _hand_out(self, prefetcher: Prefetcher) -> None:
        build_first = any(m.identity and m.identity.kind in HOST_KINDS for m in self._members.values())
        if build_first and (prefetcher.busy or self._opening):
            return
        for name in self._queue.idle:
            if task := self._queue.assign(name, prefetcher.has):
                member = self._members[name]
                member.heard = time.monotonic()
                budget = task.work.budget
                member.patience_s = SILENCE_S + 4 * budget.timeout_s + budget.seconds + task.work.thermal_limits.wait_s
                self._workers.order(name, RunCase(task.work, prefetcher.built(task.work)))
