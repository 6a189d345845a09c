"""The search for one network on one device, from its profile to what was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from device_runner.failures import DeviceLost, Failure, LinkFailure, PathFailure
from harness.build.artifact import INPUTS, OUTPUTS, Answers, Artifact
from harness.build.oracle import load_arrays
from harness.failures import CompileFailure, UsageError
from harness.profile.profile import Operator, operators_of
from harness.run.correctness import judge
from harness.tune.ahead import Ahead, Built
from harness.tune.log import TrialLog
from harness.tune.search import THROTTLED, Search, Task, Trial
from harness.tune.stand import Stand, Timed
from harness.tune.workshop import Candidate, Workshop

if TYPE_CHECKING:
    from harness.cases.plan import Plan
    from harness.run.context import Run
    from harness.workbench import Workbench

MOST_HOT = 3
"""So many times in a row heat may slow the device down before the end; each time what was timed is taken back."""
STEADY_S = 20.0
"""So long candidates run one after the other within one look at the device's heat."""


@dataclass(frozen=True)
class Budget:
    """When a search ends: after so many candidates, or so many minutes."""

    trials: int | None = None
    minutes: float = 10.0

    def left(self, tried: int, began: float) -> int:
        """How many more candidates may come, of those tried since the monotonic time `began`."""
        if self.trials is not None:
            return max(0, self.trials - tried)
        return ANY if time.monotonic() - began < 60 * self.minutes else 0


ANY = 1_000_000
"""As many as time allows."""


@dataclass(frozen=True)
class Spent:
    """Where the time of a search went."""

    tried: int
    seconds: float
    device_s: float
    """In which the device loaded, compiled and ran candidates."""
    waited_s: float
    """In which no candidate was ready for it."""

    @property
    def rest_s(self) -> float:
        """Of each trial, what is neither: the harness's own."""
        return max(0.0, self.seconds - self.device_s - self.waited_s) / max(1, self.tried)

    def __str__(self) -> str:
        return (
            f"{self.tried} trials in {self.seconds:.0f} s: the device was busy for {self.device_s:.0f} s and waited "
            f"for candidates for {self.waited_s:.0f} s; the rest is {self.rest_s:.2g} s for each trial"
        )


class Tuner:
    """Looks for schedules of one network's tasks."""

    def __init__(
        self,
        plan: Plan,
        run: Run,
        workshop: Workshop,
        log: TrialLog,
        search: Search,
        kernels_ms: float,
        say: Callable[[str], None],
    ) -> None:
        """`kernels_ms` is what all kernels of an inference of the untuned network take."""
        self._plan = plan
        self._run = run
        self._workshop = workshop
        self._log = log
        self._search = search
        self._kernels_ms = kernels_ms
        self._say = say
        self._now: Built | None = None
        """What runs, or is to run again if the device was lost."""
        self._too_hot = 0
        """How many times in a row heat slowed the device down."""

    def search(self, budget: Budget) -> Spent:
        """Try candidates until the budget is spent. What was tried is kept as it happens, whatever ends it.

        Candidates that are not done when the time is up are dropped. Returns where the time went.
        """
        began, before = time.monotonic(), self._search.tried

        def left() -> int:
            return budget.left(self._search.tried - before, began)

        with Stand(self._run.device) as stand, Ahead(self._search, self._workshop, left) as ahead:
            while self._too_hot < MOST_HOT and self._another(ahead):
                self._recovering(ahead, stand)
            if self._too_hot >= MOST_HOT:
                self._say(f"stopped: heat slowed the device down {MOST_HOT} times in a row; let it cool, then go on")
            return Spent(self._search.tried - before, time.monotonic() - began, stand.busy_s, ahead.waited_s)

    def _another(self, ahead: Ahead) -> bool:
        """Whether there is a candidate for the device; waits for one."""
        self._now = self._now or ahead.next()
        return self._now is not None

    def _recovering(self, ahead: Ahead, stand: Stand) -> None:
        """Run what comes for a while; the device is brought back if it is lost meanwhile."""

        def attempt() -> tuple[None, Failure | None]:
            try:
                self._run.recovery.admit(self._run.rungs)
                self._steadily(ahead, stand)
            except (DeviceLost, LinkFailure) as lost:
                stand.fresh()
                return None, lost
            return None, None

        self._run.recovery.retry(attempt, self._run.rungs, lambda rung: self._say(f"the device was lost: {rung}"))
        if quarantine := self._run.recovery.quarantine:
            raise DeviceLost(
                f"the device was lost: {quarantine.why}", hint="what was tried is kept: the same command goes on"
            )

    def _steadily(self, ahead: Ahead, stand: Stand) -> None:
        """Run what comes for a while within the thermal limits, and keep each trial as soon as it is done.

        Times of a device that heat slowed down are taken back: they would make later ones look fast.
        """
        done: list[Trial] = []
        until = time.monotonic() + STEADY_S

        def work() -> None:
            while self._another(ahead):
                assert self._now
                trial = self._tried(*self._now, stand)
                self._now = None
                done.append(trial)
                self._keep(trial)
                self._say(told(self._search, trial, self._kernels_ms))
                if time.monotonic() >= until:
                    break

        _, steadiness = self._run.device.steadily(work, self._plan.thermal_limits)
        self._too_hot = self._too_hot + 1 if steadiness.throttled else 0
        if steadiness.throttled:
            self._say(f"times taken back: {steadiness.why}")
            for trial in filter(lambda one: one.right, done):
                self._keep(Trial(task=trial.task, seed=trial.seed, outcome=THROTTLED, message=steadiness.why[:200]))

    def _keep(self, trial: Trial) -> None:
        self._log.append(trial)
        self._search.add(trial)

    def _tried(self, candidate: Candidate, built: Artifact | Failure, stand: Stand) -> Trial:
        """What a candidate comes to. Raises what is neither its fault nor the compiler's."""
        task, seed = candidate
        best = self._search.standings[task.task].best
        try:
            if isinstance(built, Failure):
                raise built
            given = self._workshop.given(task)
            if isinstance(given, Failure):
                raise given
            timed = stand.time(built, given, best.ms if best else None)
        except (CompileFailure, PathFailure) as failure:
            return Trial(task=task.task, seed=seed, outcome=failure.outcome, message=failure.message[:200])
        return _right(task, seed, timed)


def told(search: Search, trial: Trial, kernels_ms: float) -> str:
    """One trial for whoever watches: what it came to, and what the best so far are worth in the network."""
    standing = search.standings[trial.task]
    which = f"trial {len(standing.trials)}"
    came = trial.outcome if trial.ms is None else f"{trial.ms:.3g} ms"
    best = standing.best
    known = f" (best {best.ms:.3g} ms, {standing.gain:.3g} times as fast)" if best and best.ms else ""
    why = f": {trial.message}" if trial.message else ""
    network = f"{kernels_ms:.4g} -> {search.inference_ms(kernels_ms):.4g} ms"
    return f"{standing.task.name}: {which}: {came}{why}{known}; {search.tried} tried; the network's kernels {network}"


def profiled(plan: Plan, workbench: Workbench) -> tuple[list[Operator], float]:
    """Where the time of the untuned network goes: its operators, and all its kernels in ms, of one inference.

    Raises UsageError if the network is wrong untuned, and what building and running it raise.
    """
    built = workbench.builder.build([plan.compile, plan.oracle])
    artifact, answers = built[plan.compile.key], built[plan.oracle.key]
    for made in (artifact, answers):
        if isinstance(made, Failure):
            raise made
    assert isinstance(artifact, Artifact)
    assert isinstance(answers, Answers)
    timeout_s = plan.budget.timeout_s
    inputs, expected = (load_arrays(answers.folder / name) for name in (INPUTS, OUTPUTS))
    with workbench.device.session({}, timeout_s=timeout_s) as session:
        program = session.load(artifact.loadable, timeout_s=timeout_s)
        outputs, _ = program.run(inputs, timeout_s=timeout_s)
        if not judge(outputs, expected, plan.relative_tolerance).right:
            hint = f"`adreno-bench run --case {plan.case.id}`"
            raise UsageError(f"{plan.case.id} is wrong untuned, so nothing can be compared with it", hint=hint)
        inferences = program.launches(1, timeout_s=timeout_s)
    operators = list(operators_of(inferences, ()))
    return operators, sum(operator.ms for operator in operators)


def tasks_of(told: Sequence[dict[str, object]], operators: Sequence[Operator]) -> list[Task]:
    """The tasks that a schedule can be looked for, with what each costs; the dearest first."""
    costs = {operator.function: operator.ms for operator in operators}
    found = [
        Task(str(one["task"]), str(one["name"]), int(str(one["calls"])), tuple(map(str, one["shapes"])), cost)  # type: ignore[call-overload]
        for one in told
        if one["tunable"] and (cost := costs.get(str(one["name"]), 0.0)) > 0
    ]
    return sorted(found, key=lambda task: -task.cost_ms)


def _right(task: Task, seed: int, timed: Timed) -> Trial:
    return Trial(task=task.task, seed=seed, outcome="ok", ms=timed.ms, max_rel_err=timed.max_rel_err)
