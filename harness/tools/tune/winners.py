"""The best of each task, measured again beside TVM's own schedule, in fresh sessions and in turns.

The best of many noisy samples flatters: among fifty candidates one had luck. What is kept was faster again, in sessions
that had no part in choosing it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from device_runner.device import Program
from device_runner.failures import Failure, PathFailure
from device_runner.workers import Say
from harness.compile.artifacts.artifact import Artifact
from harness.compile.schedules.database import Schedule
from harness.measure.context import Run
from harness.measure.correctness import Truth
from harness.tools.tune.candidate_runner import MOST_S, CandidateRunner, kernels_ms, repeats
from harness.tools.tune.devices import Devices
from harness.tools.tune.search import CONTENDERS, UNTUNED, Search, TaskStanding
from harness.tools.tune.workshop import Workshop, trace_of

SESSIONS = 3
TURNS = 3
"""Turns of each in a session, in mirrored order: untuned, tuned, tuned, untuned, ..."""
LEAST_GAIN = 1.05
"""How many times as fast a schedule has to be, to be worth a line in a file that people review."""
Times = tuple[list[float], list[float]]
"""Results of one session: ms and error of TVM's own schedule, then of each candidate."""


@dataclass(frozen=True)
class Contest:
    """A task's best candidates, after TVM's own schedule, which is the first. Plain values: it crosses to a worker."""

    artifacts: Sequence[Artifact]
    truth: Truth


@dataclass(frozen=True)
class Winner:
    """Result of a task's best candidate in fresh sessions."""

    standing: TaskStanding
    schedule: Schedule | None = None
    why_not: str = ""
    """One line: why nothing is kept; empty if something is."""


def confirm_best(path: str, search: Search, workshop: Workshop, devices: Devices) -> list[Winner]:
    """Return what is kept of a search, task by task: all of it is measured on one device.

    Raises what is neither a candidate's fault nor the compiler's.
    """
    called = {task: _contest(standing, workshop) for task, standing in search.standings.items()}
    contests = {task: contest for task, contest in called.items() if isinstance(contest, Contest)}
    patience_s = SESSIONS * (1 + len(contests)) * (2 + CONTENDERS) * 2 * MOST_S
    times = devices.on_one(partial(measure_in_fresh_sessions, contests), patience_s)
    return [_winner(path, search.standings[task], contest, times.get(task, ())) for task, contest in called.items()]


def measure_in_fresh_sessions(contests: Mapping[str, Contest], run: Run, say: Say) -> dict[str, Sequence[Times] | str]:
    """Measure by task in fresh sessions. Returns the sessions' times, or why one failed: a wrong answer, or a crash."""
    times: dict[str, list[Times]] = {task: [] for task in contests}
    why_not: dict[str, str] = {}
    for count in range(SESSIONS):
        say(f"the best of each task, measured again: fresh session {count + 1} of {SESSIONS}")
        with CandidateRunner(run.device) as runner:
            for task in [name for name in times if name not in why_not]:
                try:
                    times[task].append(_measure_session(contests[task], runner))
                except PathFailure as failure:
                    why_not[task] = f"not right again: {failure.message}"
    return {**times, **why_not}


def _measure_session(contest: Contest, runner: CandidateRunner) -> Times:
    runner.reserve(len(contest.artifacts))
    loaded = [runner.load(artifact, contest.truth) for artifact in contest.artifacts]
    counts = [repeats(kernels_ms(program, 1)) for program, _ in loaded]
    return _measure_in_turns([program for program, _ in loaded], counts), [error for _, error in loaded]


def _contest(standing: TaskStanding, workshop: Workshop) -> Contest | str:
    """Return what a task is measured again with, as it was built before; or why it is not."""
    if why_not := _why_not_worth(standing):
        return why_not
    task = standing.task
    seeds = [trial.seed for trial in standing.contenders]
    truth, artifacts = workshop.truth(task), workshop.build([(task, seed) for seed in (UNTUNED, *seeds)])
    for artifact in (truth, *artifacts):
        if isinstance(artifact, Failure):
            return f"it could not be made again: {artifact.message}"
    assert not isinstance(truth, Failure)
    return Contest([artifact for artifact in artifacts if isinstance(artifact, Artifact)], truth)


def _winner(path: str, standing: TaskStanding, contest: Contest | str, times: Sequence[Times] | str) -> Winner:
    """Return what is kept of a task: the candidate that gained most, if it is worth it."""
    if isinstance(contest, str):
        return Winner(standing, why_not=contest)
    if isinstance(times, str):
        return Winner(standing, why_not=times)
    medians = [median(column) for column in zip(*(ms for ms, _ in times), strict=True)]
    best = min(range(1, len(medians)), key=medians.__getitem__)
    if median(ms[0] / ms[best] for ms, _ in times) < LEAST_GAIN:
        return Winner(standing, why_not="not faster again")
    task = standing.task
    schedule = Schedule(
        path=path,
        task=task.task,
        name=task.name,
        shapes=task.shapes,
        ms=medians[best],
        untuned_ms=medians[0],
        max_rel_err=max(errors[best] for _, errors in times),
        trials=len(standing.trials),
        trace=trace_of(contest.artifacts[best]),
    )
    return Winner(standing, schedule)


def _why_not_worth(standing: TaskStanding) -> str:
    if not standing.trials:
        return "its turn never came"
    if standing.best is None:
        return "no candidate was right"
    return "" if standing.gain >= LEAST_GAIN else "nothing faster was found"


def _measure_in_turns(programs: Sequence[Program], counts: Sequence[int]) -> list[float]:
    """Return the time of each in ms: the median of what it took in its turns."""
    times: list[list[float]] = [[] for _ in programs]
    for turn in range(TURNS):
        order = range(len(programs)) if turn % 2 == 0 else range(len(programs) - 1, -1, -1)
        for which in order:
            times[which].append(kernels_ms(programs[which], counts[which]))
    return [median(own) for own in times]
