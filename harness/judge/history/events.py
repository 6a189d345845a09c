"""What moved in a history: pure functions on points."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from harness.base.outcome import CaseState
from harness.base.tables import grouped
from harness.compile.compiler.releases import release
from harness.judge.decisions import MeasuredBuild, PairedDecision
from harness.judge.history.results import History, Point, Series, state_of_quirks
from harness.judge.stats.history import FEWEST, LastingChange, resemblance, segment
from harness.judge.stats.session import Noise
from harness.judge.stats.step import Resemblance, common_resemblance
from harness.judge.verdict import Verdict

RELEVANT = 0.03
"""Smallest step of a latency that is reported, a fraction: the default of a gate."""
NEAR = 2
"""A step lies where the artifact changed, if that is within so many measured points of where the numbers put it."""
NEWS = 12
"""Newest commits in which a step is news: nearly every step shows by then (docs/how-to/history.md)."""


WORST_FIRST = (Verdict.WRONG, Verdict.BROKEN, Verdict.SLOWER, Verdict.FASTER, Verdict.FIXED)
"""What can happen between two points."""


@dataclass(frozen=True)
class Event:
    """A series moved between two commits that were measured one after the other."""

    verdict: Verdict
    series: Series
    before: Point
    after: Point
    step: LastingChange | None = None
    """For `slower` and `faster`: the step and its certainty. One session a commit is never more than a suspicion."""
    decided: PairedDecision | None = None
    """Result of fresh sessions in turns since then, if there were any."""

    @property
    def refuted(self) -> bool:
        """Whether sessions in turns did not bear it out."""
        return self.decided is not None and self.decided.verdict is not self.verdict


def events(history: History) -> list[Event]:
    """Return all that moved, the newest commit first; within a commit what is worst first."""
    noises = noise(history)
    decided, alike = grouped(history.confirmed, _series_of), _resemblances(history)
    changes = [
        replace(event, decided=_decided(event, decided.get((series.machine, series.case.id, series.quirks), [])))
        for series in history.series
        for event in _events(series, noises.get(series.machine), alike[series.machine])
    ]
    place = {(m, c): i for m, commits in history.commits.items() for i, c in enumerate(commits)}
    return sorted(changes, key=lambda e: (-place[e.series.machine, e.after.commit], WORST_FIRST.index(e.verdict)))


def _series_of(decision: PairedDecision) -> tuple[str, str, str]:
    return decision.identity, decision.case, state_of_quirks(as_shipped=decision.as_shipped)


def _decided(event: Event, confirmed: Sequence[PairedDecision]) -> PairedDecision | None:
    """Return the last decision between just the two builds of a step."""

    def is_of(end: MeasuredBuild, point: Point) -> bool:
        return end.is_of(point.artifact, point.commit, point.tvm)

    fit = [
        decision for decision in confirmed if is_of(decision.base, event.before) and is_of(decision.head, event.after)
    ]
    return fit[-1] if fit and event.step else None


def is_news(event: Event, history: History) -> bool:
    """Return whether an event is news: at the newest commit, or a step in the last ones, as a step shows late.

    A step that sessions in turns did not bear out is none.
    """
    if event.refuted:
        return False
    newest = history.commits[event.series.machine][-(NEWS if event.step else 1) :]
    return event.after.commit in newest


def noise(history: History) -> dict[str, Noise]:
    """Return how far sessions lie apart on each machine, by its own evidence; nothing where there is none.

    Where a case is the same library as shipped and worked around, its two latencies differ by nothing but noise.
    """
    twins: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for series in history.series:
        for point in series.points:
            if point.artifact and point.wall_ms:
                twins[series.machine, point.commit, point.artifact].append(point.wall_ms)
    squares: dict[str, list[float]] = defaultdict(list)
    for (machine, _, _), latencies in twins.items():
        if len(latencies) > 1:
            squares[machine].append(math.log(max(latencies) / min(latencies)) ** 2 / 2)
    return {
        machine: Noise(math.sqrt(sum(deviations) / len(deviations)), min(len(deviations), MOST_DF))
        for machine, deviations in squares.items()
    }


MOST_DF = 4.0
"""Most degrees of freedom from other series of a machine, because series differ in their noise."""
_ANSWERED = (CaseState.RIGHT, CaseState.VACUOUS)
_TURNED = {CaseState.RIGHT: Verdict.FIXED, CaseState.WRONG: Verdict.WRONG, CaseState.BROKEN: Verdict.BROKEN}
"""What happened to a case that came to be in another state; nothing that counts in those that are missing."""


def _resemblances(history: History) -> dict[str, Resemblance]:
    """Return how much neighbouring commits of each machine resemble each other."""
    by_machine: dict[str, list[Resemblance]] = {series.machine: [] for series in history.series}
    for series in history.series:
        by_machine[series.machine].append(resemblance([point.wall_ms for point in _timed(series) if point.wall_ms]))
    return {machine: common_resemblance(alike) for machine, alike in by_machine.items()}


def _events(series: Series, spread: Noise | None, others: Resemblance) -> Iterator[Event]:
    states = [point.state for point in series.points]
    verdicts = [
        (state, point)
        for state, point in zip(states, series.points, strict=True)
        if state in _TURNED or state is CaseState.VACUOUS
    ]
    for (was, before), (now, after) in pairwise(verdicts):
        verdict = None if was is now or (was in _ANSWERED and now in _ANSWERED) else _TURNED.get(now)
        if verdict:
            yield Event(verdict, series, before, after)
    yield from _steps(series, spread, others)


def _timed(series: Series) -> list[Point]:
    """Return the points that were right and have a latency."""
    return [point for point in series.points if point.wall_ms is not None and point.state in _ANSWERED]


def _steps(series: Series, spread: Noise | None, others: Resemblance) -> Iterator[Event]:
    """Yield what the engine finds in the latencies. A build that did not change got no slower, whatever they say."""
    timed = _timed(series)
    latencies = [point.wall_ms or math.nan for point in timed]
    for step in segment(latencies, relevant=RELEVANT, noise=spread, others=others):
        place = _rebuilt_near(timed, step.index)
        if place is not None:
            verdict = Verdict.SLOWER if step.relative > 0 else Verdict.FASTER
            yield Event(verdict, series, timed[place - 1], timed[place], step)


def _rebuilt_near(timed: Sequence[Point], index: int) -> int | None:
    """Return the nearest point to a step with another artifact than the point before it; None if none is near."""
    near = range(max(1, index - NEAR), min(len(timed), index + NEAR + 1))
    rebuilt = [at for at in near if not timed[at].artifact or timed[at].artifact != timed[at - 1].artifact]
    return min(rebuilt, key=lambda at: abs(at - index), default=None)


def short_series(history: History) -> list[Series]:
    """Return series with too few latencies for a step; two suffice where the noise of the machine is known."""
    noises = noise(history)
    counts = ((series, len(_timed(series))) for series in history.series)
    return [series for series, count in counts if 0 < count < (2 if series.machine in noises else FEWEST)]


def too_short_text(series: Sequence[Series]) -> str:
    """Describe the series that are too short for a step; empty if there are none."""
    if not series:
        return ""
    which = series[0].case.id if len(series) == 1 else f"{len(series)} series"
    return f"{which}: fewer than {FEWEST} commits with a latency, too few to see what got slower or faster"


def vanished_series(history: History) -> list[Series]:
    """Return series that were right once and are missing at the newest commit of their machine."""
    return [
        series
        for series in history.series
        if any(point.state is CaseState.RIGHT for point in series.points)
        and (
            series.newest.commit != history.commits[series.machine][-1]
            or series.newest.state in (CaseState.UNKNOWN, CaseState.UNSUPPORTED)
        )
    ]


def reference(points: Sequence[Point]) -> Point | None:
    """Return the point that the newest is compared with: the last of another TVM release; None if there is none."""
    *earlier, newest = points
    other = [point for point in earlier if point.tvm and newest.tvm and release(point.tvm) != release(newest.tvm)]
    return other[-1] if other else None


def change(series: Series) -> float | None:
    """Relative change of the latency since `reference`; None if one of the two is not known."""
    before = reference(series.points)
    if before is None or before.wall_ms is None or series.newest.wall_ms is None:
        return None
    return series.newest.wall_ms / before.wall_ms - 1


def change_bounds(series: Series) -> tuple[float, float] | None:
    """Return how far the change may be off by asv's intervals of both medians: no more is known of one session each."""
    before, now = reference(series.points), series.newest
    if before is None or not before.low_ms or not before.high_ms or not now.low_ms or not now.high_ms:
        return None
    return now.low_ms / before.high_ms - 1, now.high_ms / before.low_ms - 1
