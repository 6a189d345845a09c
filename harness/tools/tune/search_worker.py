"""The device's side of a search: what the process that holds a device does with it (`device_runner.workers`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from device_runner.device import Device, Program, Session, ThermalLimits
from device_runner.failures import DeviceLost, Failure, LinkFailure, PathFailure
from device_runner.workers import Channel, Say, WorkerAnswer
from harness.base.failures import CompileFailure, UsageError
from harness.base.plan import Plan
from harness.compile.artifacts.artifact import Artifact
from harness.measure.context import Run
from harness.measure.correctness import Truth
from harness.measure.facts import Facts
from harness.measure.loop import measure
from harness.measure.tuning import TuningStore
from harness.tools.shared.kernels.profile import Launches, Operator, operators_of
from harness.tools.tune.candidate_runner import CandidateRunner
from harness.tools.tune.dispatcher import TrialOrder
from harness.tools.tune.search import THROTTLED, Task, Trial

MOST_HOT = 3
"""Most slow-downs by heat in a row before the search ends; each discards the times that it affected."""
STEADY_S = 20.0
"""Seconds of candidates between two looks at the device's heat."""
T = TypeVar("T")
Act = Callable[[Run, Say], T]
"""Something that is done on one device. It crosses to another process, so it is a function of a module, or a partial of
one."""


@dataclass(frozen=True)
class TimeUse:
    """Use of a search's time on one device."""

    tried: int
    seconds: float
    device_s: float
    """Seconds in which the device loaded, compiled and ran candidates."""
    waited_s: float
    """Seconds in which no candidate was ready for it."""

    @property
    def rest_s(self) -> float:
        """The harness's own seconds for each trial."""
        return max(0.0, self.seconds - self.device_s - self.waited_s) / max(1, self.tried)

    def __str__(self) -> str:
        return (
            f"{self.tried} trials in {self.seconds:.0f} s: the device was busy for {self.device_s:.0f} s and waited "
            f"for candidates for {self.waited_s:.0f} s; the rest is {self.rest_s:.2g} s for each trial"
        )


class SearchWorker:
    """Tries candidates on one device, which it has from the other end of the channel."""

    def __init__(self, run: Run, thermal_limits: ThermalLimits, channel: Channel) -> None:
        self._run = run
        self._limits = thermal_limits
        self._channel = channel
        self._now: TrialOrder | None = None
        """What runs, or is to run again if the device was lost."""
        self._tried = 0
        self._waited_s = 0.0
        self._too_hot = 0
        """How many times in a row heat slowed the device down."""

    def search(self) -> TimeUse:
        """Try candidates until there are no more. What was tried is kept as it happens, whatever ends it.

        Returns where the time went. Raises DeviceLost if the device is not brought back.
        """
        began = time.monotonic()
        with CandidateRunner(self._run.device) as runner:
            while self._too_hot < MOST_HOT and self._fetch_next():
                self._run_with_recovery(runner)
            if self._too_hot >= MOST_HOT:
                self._channel.say(
                    f"stopped: heat slowed the device down {MOST_HOT} times in a row; let it cool, then go on"
                )
            return TimeUse(self._tried, time.monotonic() - began, runner.busy_s, self._waited_s)

    def _fetch_next(self) -> bool:
        """Return whether there is a candidate for the device; waits for one."""
        if self._now is None:
            began = time.monotonic()
            self._channel.send(CandidateRequest())
            self._now = self._channel.receive()
            self._waited_s += time.monotonic() - began
        return self._now is not None

    def _run_with_recovery(self, runner: CandidateRunner) -> None:
        """Run what comes for a while; the device is brought back if it is lost meanwhile."""

        def attempt() -> tuple[None, Failure | None]:
            try:
                self._run.recovery.admit(self._run.rungs)
                self._run_steadily(runner)
            except (DeviceLost, LinkFailure) as lost:
                runner.end()
                return None, lost
            return None, None

        self._run.recovery.retry(
            attempt, self._run.rungs, lambda rung: self._channel.say(f"the device was lost: {rung}")
        )
        if quarantine := self._run.recovery.quarantine:
            raise DeviceLost(
                f"the device was lost: {quarantine.why}", hint="finished trials are kept; the same command continues"
            )

    def _run_steadily(self, runner: CandidateRunner) -> None:
        """Run what comes for a while within the thermal limits, and keep each trial as soon as it is done.

        Times of a device that heat slowed down are taken back: they would make later ones look fast.
        """
        done: list[Trial] = []
        until = time.monotonic() + STEADY_S

        def work() -> None:
            while self._fetch_next():
                assert self._now
                trial = try_candidate(self._now, runner, self._run.device.name)
                self._now = None
                self._tried += 1
                done.append(trial)
                self._channel.send(TrialResult(trial))
                if time.monotonic() >= until:
                    break

        _, steadiness = self._run.device.steadily(work, self._limits)
        self._too_hot = self._too_hot + 1 if steadiness.throttled else 0
        if steadiness.throttled:
            self._channel.say(f"times taken back: {steadiness.why}")
            back = {"outcome": THROTTLED, "message": steadiness.why[:200], "ms": None, "max_rel_err": None}
            for trial in filter(lambda trial: trial.right, done):
                self._channel.send(TrialResult(trial.model_copy(update=back)))


def try_candidate(ready: TrialOrder, runner: CandidateRunner, device: str) -> Trial:
    """Return what a candidate comes to. Raises what is neither its fault nor the compiler's."""
    try:
        if isinstance(ready.built, Failure):
            raise ready.built
        if isinstance(ready.truth, Failure):
            raise ready.truth
        timed = runner.time(ready.built, ready.truth, ready.best_ms)
    except (CompileFailure, PathFailure) as failure:
        return ready.trial(failure.outcome, failure.message, device)
    return ready.trial("ok", "", device).model_copy(update={"ms": timed.ms, "max_rel_err": timed.max_rel_err})


@dataclass(frozen=True)
class LaunchProbe:
    """Watches some inferences. Raises RigFailure where launches cannot be watched."""

    repeat: int
    timeout_s: float
    step = ""
    timed = True

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[Launches]:
        """Watch the inferences."""
        yield Launches(program.launches(self.repeat, timeout_s=self.timeout_s))


def profile_network(plan: Plan, artifact: Artifact, truth: Truth, run: Run, _say: Say) -> list[Operator]:
    """Profile the untuned network: the time of its operators in one inference.

    Raises UsageError if the network is wrong untuned, and what running it raises.
    """
    timeout_s, facts = plan.budget.timeout_s, Facts()
    with run.device.session({}, timeout_s=timeout_s) as session:
        measure(artifact.loadable, truth, session, [LaunchProbe(1, timeout_s)], facts, timeout_s=timeout_s)
    if (launches := facts.get(Launches)) is None:
        hint = f"`adreno-bench run --case {plan.case.id}`"
        raise UsageError(f"{plan.case.id} is wrong untuned, so nothing can be compared with it", hint=hint)
    return list(operators_of(launches.inferences, ()))


def tasks_of(entries: Sequence[Mapping[str, Any]], operators: Sequence[Operator]) -> list[Task]:
    """Return the tasks that a schedule can be looked for, with what each costs; the dearest first."""
    costs = {operator.function: operator.ms for operator in operators}
    tasks = [
        Task(entry["task"], entry["name"], entry["calls"], tuple(entry["shapes"]), cost)
        for entry in entries
        if entry["tunable"] and (cost := costs.get(entry["name"], 0.0)) > 0
    ]
    return sorted(tasks, key=lambda task: -task.cost_ms)


@dataclass(frozen=True)
class SearchOrder:
    """To a worker: try candidates until there are no more."""

    limits: ThermalLimits


@dataclass(frozen=True)
class CandidateRequest(WorkerAnswer):
    """Message from a worker: it is ready for a candidate. A `TrialOrder` is its order, or None if there are no more."""


@dataclass(frozen=True)
class TrialResult:
    """Message from a worker: the result of a candidate."""

    trial: Trial


@dataclass(frozen=True)
class ActResult(WorkerAnswer):
    """Message from a worker: the result of its order."""

    result: Any


@dataclass(frozen=True)
class ActFailure(WorkerAnswer):
    """Message from a worker: why its order failed."""

    failure: Failure


def obey(cache: Path, as_shipped: bool, device: Device, channel: Channel) -> None:
    """Do what is ordered, a search or an `Act`, until there are no more orders, which raises EOFError."""
    run = Run(device, TuningStore(cache), as_shipped)
    while True:
        order: SearchOrder | Act[Any] = channel.receive()
        try:
            if isinstance(order, SearchOrder):
                channel.send(ActResult(SearchWorker(run, order.limits, channel).search()))
            else:
                channel.send(ActResult(order(run, channel.say)))
        except Failure as failure:
            channel.send(ActFailure(failure))
