"""The device's side of a suite: takes cases and returns records, in a process of its own or in this one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from device_runner.device import Device, Permission, Pulse
from device_runner.failures import Failure
from device_runner.workers import Arrival, Channel, SideNote, WorkerAnswer, WorkerHost
from harness.base.plan import Plan
from harness.base.suite import Limits
from harness.compile.artifacts.artifact import Built
from harness.compile.artifacts.pool import Builder, shared_store
from harness.measure.context import Run
from harness.measure.device_watch import DeviceWatch
from harness.measure.loop import run_case
from harness.measure.progress import Progress, RunStep, SilentProgress
from harness.measure.records.record import Record
from harness.measure.tuning import TuningStore

LOOK_EVERY_S = 2.0
LOOK_TIMEOUT_S = 2.0
"""A device that dies while it has nothing to do is noticed within both."""

AWAY = "does not answer"


@dataclass(frozen=True)
class Settings:
    """Settings of all workers of a run."""

    cache: Path
    run: str
    """Id of the run, in all its records."""
    as_shipped: bool = False
    limits: Limits = field(default_factory=Limits)
    """Limits of builds that a case needs while it runs."""
    allowed: frozenset[Permission] = frozenset()
    """Recovery steps that need permission: USB power, reboot."""
    store: str | None = None
    """URL of the store that hosts share."""
    watched: bool = False
    """Whether the device's state is read while it works."""


@dataclass(frozen=True)
class CaseOrder:
    """To a worker: carry this case to its record."""

    plan: Plan
    built: Built


@dataclass(frozen=True)
class StepChange:
    """Message from a worker: its case has reached a step."""

    step: str


@dataclass(frozen=True)
class DeviceState(SideNote):
    """Message from a worker: the state of its device."""

    pulse: Pulse


@dataclass(frozen=True)
class CaseResult(WorkerAnswer):
    """Message from a worker: a case has its record. `lost` says why the device was given up meanwhile, if it was."""

    record: Record
    lost: str = ""


@dataclass(frozen=True)
class Absence:
    """Message from an idle worker: its device no longer answers."""

    why: str


@dataclass(frozen=True)
class Return:
    """Message from a worker whose device was given up: it answers again."""


def run_cases(settings: Settings, device: Device, channel: Channel) -> None:
    """Run the ordered cases until there are no more orders, which raises EOFError."""
    tunings, allowed = TuningStore(settings.cache), settings.allowed
    shared = shared_store(settings.store, channel.say)
    watch = DeviceWatch((lambda pulse: channel.send(DeviceState(pulse))) if settings.watched else None)
    with Builder(settings.cache, settings.limits, processes=1, shared=shared) as builder, watch.looking_at(device):
        run = Run(device, tunings, settings.as_shipped, allowed=allowed, id=settings.run, builder=builder, watch=watch)
        while True:
            order = _next(run, channel)
            record = run_with_recovery(order.plan, order.built, run, _Steps(channel))
            quarantine = run.recovery.quarantine
            channel.show("", AWAY if quarantine else "")
            channel.send(CaseResult(record, quarantine.why if quarantine else ""))


class OwnWorker(WorkerHost):
    """The worker of a device that this process holds: `receive` runs the case."""

    def __init__(self, run: Run, progress: Progress) -> None:
        self._run, self._progress = run, progress
        self._orders: list[CaseOrder | None] = []

    def start(self, name: str) -> bool:
        """Make the device's arrival the first answer."""
        self._orders.append(None)
        return True

    def send(self, name: str, order: CaseOrder) -> None:
        """Keep the order until `receive`."""
        self._orders.append(order)

    def receive(self, timeout_s: float) -> Iterator[tuple[str, WorkerAnswer]]:
        """Carry out the orders. A lost device is no loss of the worker: the next case tries to bring it back."""
        device, orders = self._run.device, self._orders
        while orders:
            if order := orders.pop(0):
                record = run_with_recovery(order.plan, order.built, self._run, self._progress)
                yield device.name, CaseResult(record)
            else:
                yield device.name, Arrival(device.identity, device.name)


def run_with_recovery(plan: Plan, built: Built, run: Run, progress: Progress) -> Record:
    """Carry one case to its record; while the device is lost, bring it back and try again.

    Afterwards `run.recovery.quarantine` says whether the device was given up. What the path itself does wrong is never
    tried again, but for a failure in which the GPU was reset: a program that resets it is one that does so twice. Never
    raises for what the case or the device does wrong.
    """
    resets: list[Failure] = []

    def attempt() -> tuple[Record, Failure | None]:
        recording = run_case(plan, built, run, progress)
        if (reset := recording.gpu_reset) and not resets:
            resets.append(reset)
            return recording.record, reset
        return recording.record, recording.lost

    step = partial(progress.step, plan.case.id)
    record, steps = run.recovery.retry(attempt, run.rungs, lambda rung: step(f"{RunStep.DEVICE_LOST}: {rung}"))
    return record.model_copy(update={"recovery": steps})


def _next(run: Run, channel: Channel) -> CaseOrder:
    """Return the next order. As long as there is none it looks after the device, and says when it goes and comes."""
    away = run.recovery.quarantine is not None
    while not channel.has_order(LOOK_EVERY_S):
        why = _why_silent(run)
        if bool(why) is not away:
            away = not away
            channel.show("", AWAY if away else "")
            channel.send(Absence(why) if away else Return())
    order = channel.receive()
    if not isinstance(order, CaseOrder):
        raise TypeError(f"expected an order, found {type(order).__name__}")
    return order


def _why_silent(run: Run) -> str:
    """Return why the device does not answer; empty if it does. Bringing it back is for the next case."""
    try:
        if run.recovery.quarantine:
            run.recovery.admit(run.rungs)
        elif run.rungs:
            run.rungs[0].act(LOOK_TIMEOUT_S)
    except Failure as failure:
        return failure.message
    return ""


class _Steps(SilentProgress):
    """Tells the run, and who watches the device, how a case goes."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def step(self, case_id: str, step: str) -> None:
        """Pass it on."""
        self._channel.send(StepChange(step))
        self._channel.show(case_id, step)
