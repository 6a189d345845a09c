"""Search schedules for cases and write their file: the work of `adreno-bench tune`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from device_runner.device import Identity
from device_runner.failures import Unsupported
from device_runner.workers import SILENCE_S
from harness.base.failures import UsageError
from harness.base.plan import Plan
from harness.compile.artifacts.pool import Builder
from harness.compile.compiler.releases import tvm_version
from harness.compile.schedules import database
from harness.compile.schedules.database import Schedule, ScheduleOrigin, Schedules, TaskLimits, ThreadLimits
from harness.measure.progress import Progress
from harness.measure.work import open_work
from harness.measure.workbench import Request
from harness.tools.shared.kernels.profile import Operator
from harness.tools.tune.devices import Devices, kind_key
from harness.tools.tune.dispatcher import Dispatcher, SearchBudget, TrialLog
from harness.tools.tune.search import Search, Trial, commonest_reason
from harness.tools.tune.search_worker import profile_network, tasks_of
from harness.tools.tune.winners import Winner, confirm_best
from harness.tools.tune.workshop import Workshop


@dataclass(frozen=True)
class CaseTuning:
    """Result of the search for one case."""

    case: str
    kernels_ms: float
    """Time of one untuned inference."""
    winners: Sequence[Winner]
    trials: Sequence[Trial]

    @property
    def after_ms(self) -> float:
        """The same with what was kept, by the gain of each task alone: an estimate, which a run replaces."""
        saved = 0.0
        for winner in self.winners:
            if winner.schedule:
                saved += winner.standing.task.cost_ms * (1 - winner.schedule.ms / winner.schedule.untuned_ms)
        return self.kernels_ms - saved

    @property
    def complaint(self) -> str:
        """The commonest reason, if no candidate of the search was right; else empty."""
        return commonest_reason(self.trials) if self.trials and not any(trial.right for trial in self.trials) else ""

    @property
    def plain(self) -> dict[str, Any]:
        """The result as JSON values."""
        return {
            "case": self.case,
            "kernels_ms": self.kernels_ms,
            "expected_ms": self.after_ms,
            "tried": len(self.trials),
            "right": sum(trial.right for trial in self.trials),
            "tasks": [_plain(winner) for winner in self.winners],
        }


def _plain(winner: Winner) -> dict[str, Any]:
    task, schedule = winner.standing.task, winner.schedule
    return {
        "task": task.task,
        "name": task.name,
        "calls": task.calls,
        "cost_ms": task.cost_ms,
        "tried": len(winner.standing.trials),
        "untuned_ms": schedule.untuned_ms if schedule else None,
        "ms": schedule.ms if schedule else None,
        "why_not": winner.why_not,
    }


def open_schedules(out: Path, identity: Identity) -> Schedules:
    """Return the file of schedules to add to, or a new one.

    Raises UsageError for one of another release or for other devices: a file has one origin.
    """
    origin = _origin(identity)
    if not out.exists():
        return Schedules(origin, ())
    schedules = database.read(out)
    try:
        if (theirs := schedules.origin.tvm) != origin.tvm:
            raise UsageError(f"the schedules {out} were found with TVM {theirs}, and this is {origin.tvm}")
        database.require_limits(out, schedules, identity)
    except UsageError as error:
        raise UsageError(error.message, hint="name another file with --out") from None
    more = {name: getattr(origin, name) for name in ("work_group_items", "local_memory_bytes")}
    return replace(schedules, origin=schedules.origin.model_copy(update=more))


def _origin(identity: Identity) -> ScheduleOrigin:
    """Return the first line of a file that is begun on a device."""
    threads = ThreadLimits.of(identity)
    return ScheduleOrigin(
        tvm=tvm_version(),
        limits=TaskLimits.of(identity),
        work_group_items=threads.items,
        local_memory_bytes=threads.local_bytes,
        device=identity.key,
        gpu=identity.gpu[:200],
    )


@dataclass(frozen=True)
class Bench:
    """What a search works with."""

    request: Request
    builder: Builder
    devices: Devices
    progress: Progress


def tune(bench: Bench, budget: SearchBudget, out: Path) -> list[CaseTuning]:
    """Look for schedules of each case of the request, and write the best of each task to `out`, case by case.

    Raises what building the untuned network and the devices raise; what was tried until then is kept.
    """
    identity = bench.devices.identity
    open_schedules(out, identity).write(out)  # what cannot be written is told before the search, not after it
    return [_tune(plan, bench, budget, out) for plan in bench.request.plans(identity)]


def _tune(plan: Plan, bench: Bench, budget: SearchBudget, out: Path) -> CaseTuning:
    case, devices, say = plan.case, bench.devices, bench.progress.say
    identity = devices.identity
    if plan.unsupported:
        raise Unsupported(plan.unsupported)
    with Workshop(plan, bench.builder, bench.request.suite.limits, ThreadLimits.of(identity)) as workshop:
        say(f"{case.id}: profiling the untuned network")
        tasks = workshop.tasks()
        operators = _profile(plan, bench)
        kernels_ms = sum(operator.ms for operator in operators)
        kind = kind_key(identity)
        log = TrialLog(bench.request.cache, workshop.trials_key(tasks), kind, f"{case.id} on {kind}")
        with log.lock():
            search = Search(tasks_of(tasks, operators), log.read())
            say(_describe_start(case.id, search, len(tasks), kernels_ms))
            try:
                with Dispatcher(search, workshop, log, budget, kernels_ms, say, devices.count) as dispatcher:
                    spent = devices.search(plan.thermal_limits, dispatcher)
            except (KeyboardInterrupt, SystemExit):
                say(f"stopped: {search.tried} trials are kept, and the same command goes on from them")
                raise
            for name, its in spent.items():
                say(f"{name}: {its}" if len(spent) > 1 else str(its))
            trials = list(log.read())
        winners = confirm_best(case.path, search, workshop, devices)
    if schedules := [winner.schedule for winner in winners if winner.schedule]:
        with_newer(open_schedules(out, identity), schedules).write(out)
    return CaseTuning(case.id, kernels_ms, winners, trials)


def with_newer(schedules: Schedules, newer: Sequence[Schedule]) -> Schedules:
    """Return schedules with these in place of those of the same tasks."""
    of_tasks = {schedule.key: schedule for schedule in (*schedules.records, *newer)}
    return Schedules(schedules.origin, tuple(of_tasks.values()))


def _profile(plan: Plan, bench: Bench) -> list[Operator]:
    """Return the operators of the untuned network. Raises what building and running it raise."""
    work = open_work(plan, bench.builder.build([plan.compile, plan.oracle]))
    act = partial(profile_network, plan, work.artifact, work.truth)
    return bench.devices.on_one(act, SILENCE_S + 4 * plan.budget.timeout_s)


def _describe_start(case: str, search: Search, functions: int, kernels_ms: float) -> str:
    share = sum(standing.task.cost_ms for standing in search.standings.values()) / kernels_ms if kernels_ms else 0.0
    again = f"; {search.tried} trials of an earlier run are taken up" if search.tried else ""
    if not search.standings:
        raise UsageError(f"{case} has no task that can be tuned", hint="see docs/how-to/tune.md")
    tasks = f"{len(search.standings)} of {functions} functions can be tuned, {share:.0%} of {kernels_ms:.4g} ms"
    return f"{case}: {tasks}{again}"
