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
from harness.tune.stand import Given, Stand, kernels_ms, repeats
from harness.tune.workshop import Workshop, trace_of

if TYPE_CHECKING:
    from device_runner.device import Device

SESSIONS = 3
TURNS = 3
"""Of each in a session: untuned, tuned, tuned, untuned, ..."""
LEAST_GAIN = 1.05
"""How many times as fast a schedule has to be, to be worth a line in a file that people review."""


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
    found = []
    for standing in search.standings.values():
        if why_not := _not_worth(standing):
            found.append(Winner(standing, why_not=why_not))
            continue
        winner = _again(path, standing, workshop, device)
        kept = winner.schedule
        said = f"kept, {kept.untuned_ms:.3g} -> {kept.ms:.3g} ms" if kept else winner.why_not
        say(f"{standing.task.name}: measured again in {SESSIONS} fresh sessions: {said}")
        found.append(winner)
    return found


def _not_worth(standing: Standing) -> str:
    if standing.untuned is None:
        return "its turn never came"
    if standing.hopeless:
        return f"TVM's own schedule of it is no measure: {standing.untuned.message or standing.untuned.outcome}"
    if not standing.trials:
        return "its turn never came"
    if standing.best is None:
        return "no candidate was right"
    return "" if standing.gain >= LEAST_GAIN else "nothing faster was found"


def _again(path: str, standing: Standing, workshop: Workshop, device: Device) -> Winner:
    best, given = standing.best, workshop.given(standing.task)
    assert best
    built = workshop.build([(standing.task, UNTUNED), (standing.task, best.seed)])
    for made in (given, *built):
        if isinstance(made, Failure):
            return Winner(standing, why_not=f"it could not be made again: {made.message}")
    untuned, tuned = built
    assert not isinstance(given, Failure)
    assert isinstance(untuned, Artifact)
    assert isinstance(tuned, Artifact)
    try:
        pairs = [_session(untuned, tuned, given, device) for _ in range(SESSIONS)]
    except PathFailure as failure:
        return Winner(standing, why_not=f"not right again: {failure.message}")
    untuned_ms, ms = (median(column) for column in zip(*((was, now) for was, now, _ in pairs), strict=True))
    if median(was / now for was, now, _ in pairs) < LEAST_GAIN:
        return Winner(standing, why_not="not faster again")
    schedule = Schedule(
        path=path,
        task=standing.task.task,
        name=standing.task.name,
        shapes=standing.task.shapes,
        ms=ms,
        untuned_ms=untuned_ms,
        max_rel_err=max(error for _, _, error in pairs),
        trials=len(standing.trials),
        trace=trace_of(tuned),
    )
    return Winner(standing, schedule)


def _session(untuned: Artifact, tuned: Artifact, given: Given, device: Device) -> tuple[float, float, float]:
    """Times of both in a fresh session, in ms, and the tuned one's error."""
    with Stand(device) as stand:
        was, _ = stand.load(untuned, given)
        now, error = stand.load(tuned, given)
        counts = repeats(kernels_ms(was, 1)), repeats(kernels_ms(now, 1))
        times: tuple[list[float], list[float]] = ([], [])
        for turn in range(TURNS):
            for which in (0, 1) if turn % 2 == 0 else (1, 0):
                times[which].append(kernels_ms((was, now)[which], counts[which]))
    return median(times[0]), median(times[1]), error


def kept_of(winners: Sequence[Winner]) -> list[Schedule]:
    """The schedules that are kept."""
    return [winner.schedule for winner in winners if winner.schedule]
