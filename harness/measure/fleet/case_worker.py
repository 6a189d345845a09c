"""What the process that holds a device of a fleet does with it: takes cases and returns records."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from device_runner.device import Device, Permission
from device_runner.failures import Failure
from device_runner.workers import Channel, WorkerAnswer
from harness.base.plan import Plan
from harness.base.suite import Limits
from harness.compile.artifacts.artifact import Built
from harness.compile.artifacts.pool import Builder
from harness.compile.artifacts.shared_store import shared_store
from harness.measure.context import Run
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.runner import run_with_recovery
from harness.measure.tuning import TuningStore

LOOK_EVERY_S = 2.0
LOOK_TIMEOUT_S = 2.0
"""A device that dies while it has nothing to do is noticed within both."""

AWAY = "does not answer"


@dataclass(frozen=True)
class Settings:
    """What holds for the whole run."""

    cache: Path
    run: str
    """Id of the run, in all its records."""
    as_shipped: bool = False
    limits: Limits = field(default_factory=Limits)
    """Limits of builds that a case needs while it runs."""
    allowed: frozenset[Permission] = frozenset()
    """What may be done to a lost device beyond connecting it anew."""
    store: str | None = None
    """URL of the store that hosts share."""


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
    """Run what is ordered until there are no more orders, which raises EOFError."""
    tunings, allowed = TuningStore(settings.cache), settings.allowed
    shared = shared_store(settings.store, channel.say)
    with Builder(settings.cache, settings.limits, processes=1, shared=shared) as builder:
        run = Run(device, tunings, settings.as_shipped, allowed=allowed, id=settings.run, builder=builder)
        while True:
            order = _next(run, channel)
            record = run_with_recovery(order.plan, order.built, run, _Steps(channel))
            quarantine = run.recovery.quarantine
            channel.show("", AWAY if quarantine else "")
            channel.send(CaseResult(record, quarantine.why if quarantine else ""))


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
    """Return why the device does not answer; empty if it does.

    It is only looked at: bringing it back is for the next case.
    """
    try:
        if run.recovery.quarantine:
            run.recovery.admit(run.rungs)
        elif run.rungs:
            run.rungs[0].act(LOOK_TIMEOUT_S)
    except Failure as failure:
        return failure.message
    return ""


class _Steps(SilentProgress):
    """Tells the run, and whoever watches the device, what becomes of a case."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def step(self, case_id: str, step: str) -> None:
        """Pass it on."""
        self._channel.send(StepChange(step))
        self._channel.show(case_id, step)
