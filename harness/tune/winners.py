"""The best of each task, measured again beside TVM's own schedule, in fresh sessions and in turns.

The best of many noisy samples flatters: among fifty candidates one had luck. What is kept was faster again, in sessions
that had no part in choosing it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from device_runner.failures import Failure, PathFailure
from harness.build.artifact import Artifact
from harness.schedules.database import Schedule
from harness.tune.search import UNTUNED, Search, Standing
from harness.tune.stand import Stand, kernels_ms, repeats
from harness.tune.workshop import Workshop, trace_of

if TYPE_CHECKING:
    from device_runner.device import Device, Program

SESSIONS = 3
TURNS = 3
"""Of each in a session, there and back: untuned, tuned, tuned, untuned, ..."""
LEAST_GAIN = 1.05
"""How many times as fast a schedule has to be, to be worth a line in a file that people review."""
Times = tuple[list[float], list[float]]
"""Of one session: ms and error of TVM's own schedule and then of each candidate."""


@dataclass(frozen=True)
class Winner:
    """What became of a task's best in fresh sessions."""

    standing: Standing
    schedule: Schedule | None = None
    why_not: str = ""
    """One line: why nothing is kept; empty if something is."""


def measured_again(
    path: str, search: Search, workshop: Workshop, device: Device, say: Callable[[str], None]
) -> list[Winner]:
    """What is kept of a search, task by task. Raises what is neither a candidate's fault nor the compiler's."""
    again = {standing.task.task: _Again(standing, workshop) for standing in search.standings.values()}
    for count in range(SESSIONS):
        say(f"the best of each task, measured again: fresh session {count + 1} of {SESSIONS}")
        with Stand(device) as stand:
            for one in again.values():
                one.measure(stand)
    return [one.winner(path) for one in again.values()]


class _Again:
    """One task's best candidates and TVM's own schedule, side by side in session after session."""

    def __init__(self, standing: Standing, workshop: Workshop) -> None:
        self._standing = standing
        self._why_not = _not_worth(standing)
        self._times: list[Times] = []
        if not self._why_not:
            self._make(workshop)

    def _make(self, workshop: Workshop) -> None:
        """Build them; they come out of the store, as they were built before."""
        task = self._standing.task
        seeds = [trial.seed for trial in self._standing.contenders]
        given, made = workshop.given(task), workshop.build([(task, seed) for seed in (UNTUNED, *seeds)])
        for one in (given, *made):
            if isinstance(one, Failure):
                self._why_not = f"it could not be made again: {one.message}"
                return
        assert not isinstance(given, Failure)
        self._given = given
        self._made: list[Artifact] = [one for one in made if isinstance(one, Artifact)]

    def measure(self, stand: Stand) -> None:
        """Time all of them in turns, in the session that is open."""
        if self._why_not:
            return
        try:
            stand.make_room(len(self._made))
            loaded = [stand.load(artifact, self._given) for artifact in self._made]
            counts = [repeats(kernels_ms(program, 1)) for program, _ in loaded]
            self._times.append((_in_turns([program for program, _ in loaded], counts), [error for _, error in loaded]))
        except PathFailure as failure:
            self._why_not = f"not right again: {failure.message}"

    def winner(self, path: str) -> Winner:
        """What is kept: the candidate that gained most, if it is worth it."""
        if self._why_not:
            return Winner(self._standing, why_not=self._why_not)
        medians = [median(column) for column in zip(*(times for times, _ in self._times), strict=True)]
        best = min(range(1, len(medians)), key=medians.__getitem__)
        if median(times[0] / times[best] for times, _ in self._times) < LEAST_GAIN:
            return Winner(self._standing, why_not="not faster again")
        task = self._standing.task
        schedule = Schedule(
            path=path,
            task=task.task,
            name=task.name,
            shapes=task.shapes,
            ms=medians[best],
            untuned_ms=medians[0],
            max_rel_err=max(errors[best] for _, errors in self._times),
            trials=len(self._standing.trials),
            trace=trace_of(self._made[best]),
        )
        return Winner(self._standing, schedule)


def _not_worth(standing: Standing) -> str:
    if not standing.trials:
        return "its turn never came"
    if standing.best is None:
        return "no candidate was right"
    return "" if standing.gain >= LEAST_GAIN else "nothing faster was found"


def _in_turns(programs: Sequence[Program], counts: Sequence[int]) -> list[float]:
    """The time of each in ms: the median of what it took in its turns."""
    times: list[list[float]] = [[] for _ in programs]
    for turn in range(TURNS):
        order = range(len(programs)) if turn % 2 == 0 else range(len(programs) - 1, -1, -1)
        for which in order:
            times[which].append(kernels_ms(programs[which], counts[which]))
    return [median(own) for own in times]


def kept_of(winners: Sequence[Winner]) -> list[Schedule]:
    """The schedules that are kept."""
    return [winner.schedule for winner in winners if winner.schedule]
