"""What moved in a history: pure functions on points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from harness.compiler.installed import release
from harness.history.results import History, Point, Series
from harness.judge.verdict import Verdict
from harness.run.outcome import Outcome, Owner

SLOWER_BY = 0.10
"""Least relative change of the median that two neighbours must show, besides confidence intervals that do not meet.
A session has a bias of its own, which repeated inferences cannot see; how large it was is seen where one library was
measured twice (`noise`)."""


class CaseState(str, Enum):
    """What a point says of its case."""

    RIGHT = "right"
    VACUOUS = "vacuous"
    """Right, and an answer that knows nothing of the network would have been right, too."""
    WRONG = "wrong"
    BROKEN = "broken"
    UNSUPPORTED = "unsupported"
    UNKNOWN = "not measured"
    """The device or the rig failed: nothing was learnt of the case."""


WORST_FIRST = (Verdict.WRONG, Verdict.BROKEN, Verdict.SLOWER, Verdict.FASTER, Verdict.FIXED)
"""What can happen between two points."""


@dataclass(frozen=True)
class Event:
    """A series moved between two commits that were measured one after the other."""

    verdict: Verdict
    series: Series
    before: Point
    after: Point
    noise: float
    """Largest relative difference that one library showed against itself at either commit; 0 if none ran twice."""

    @property
    def ratio(self) -> float | None:
        """New latency over old, if both are known."""
        return self.after.wall_ms / self.before.wall_ms if self.after.wall_ms and self.before.wall_ms else None


def state_of(point: Point) -> CaseState:
    """The state that a point's outcome means. A commit that cannot be installed is broken."""
    if point.vacuous:
        return CaseState.VACUOUS
    return _STATES[point.outcome] if point.outcome else CaseState.BROKEN


def _state_of(outcome: Outcome) -> CaseState:
    if outcome in (Outcome.OK, Outcome.UNSUPPORTED, Outcome.WRONG_RESULT):
        states = {Outcome.OK: CaseState.RIGHT, Outcome.WRONG_RESULT: CaseState.WRONG}
        return states.get(outcome, CaseState.UNSUPPORTED)
    if outcome.owner in (Owner.DEVICE, Owner.RIG) or outcome is Outcome.INCONCLUSIVE:
        return CaseState.UNKNOWN
    return CaseState.BROKEN


_STATES = {outcome: _state_of(outcome) for outcome in Outcome}
"""A history asks millions of times."""


def events(history: History) -> list[Event]:
    """All that moved, the newest commit first; within a commit what is worst first."""
    heard = noise(history)
    found = [event for series in history.series for event in _events(series, heard)]
    place = {(m, c): i for m, commits in history.commits.items() for i, c in enumerate(commits)}
    return sorted(found, key=lambda e: (-place[e.series.machine, e.after.commit], WORST_FIRST.index(e.verdict)))


Noise = Mapping[tuple[str, str], float]
"""By machine and commit."""


def noise(history: History) -> Noise:
    """Where a case is the same library as shipped and worked around, its two latencies differ by nothing but noise."""
    twins: dict[tuple[str, str, str], list[float]] = {}
    for series in history.series:
        for point in series.points:
            if point.artifact and point.wall_ms:
                twins.setdefault((series.machine, point.commit, point.artifact), []).append(point.wall_ms)
    heard: dict[tuple[str, str], float] = {}
    for (machine, commit, _), latencies in twins.items():
        spread = max(latencies) / min(latencies) - 1
        heard[machine, commit] = max(heard.get((machine, commit), 0.0), spread)
    return heard


_ANSWERED = (CaseState.RIGHT, CaseState.VACUOUS)
_TURNED = {CaseState.RIGHT: Verdict.FIXED, CaseState.WRONG: Verdict.WRONG, CaseState.BROKEN: Verdict.BROKEN}
"""What happened to a case that came to be in another state; nothing that counts in those that are missing."""


def _events(series: Series, heard: Noise) -> Iterator[Event]:
    states = ((state_of(point), point) for point in series.points)
    known = [(state, point) for state, point in states if state in _TURNED or state is CaseState.VACUOUS]
    for (was, before), (now, after) in pairwise(known):
        if was in _ANSWERED and now in _ANSWERED:
            verdict = _moved(before, after)
        else:
            verdict = None if was is now else _TURNED.get(now)
        if not verdict:
            continue
        loudest = max(heard.get((series.machine, point.commit), 0.0) for point in (before, after))
        event = Event(verdict, series, before, after, loudest)
        if not verdict.changed or _far(event):
            yield event


def _moved(before: Point, after: Point) -> Verdict | None:
    if before.wall_ms is None or after.wall_ms is None or _meet(before, after):
        return None
    if before.artifact and before.artifact == after.artifact:
        return None  # the same build: whatever moved, it was not the compiler
    return Verdict.SLOWER if after.wall_ms > before.wall_ms else Verdict.FASTER


def _far(event: Event) -> bool:
    """Whether two latencies lie further apart than what counts, and than one library did from itself."""
    ratio = event.ratio or 1.0
    return max(ratio, 1 / ratio) > 1 + max(SLOWER_BY, event.noise)


def _meet(before: Point, after: Point) -> bool:
    """Whether the confidence intervals overlap. Without both of them nothing can be told."""
    if before.low_ms is None or before.high_ms is None or after.low_ms is None or after.high_ms is None:
        return True
    return after.low_ms <= before.high_ms and before.low_ms <= after.high_ms


def vanished(history: History) -> list[Series]:
    """Series that were right once and of which the newest commit of their machine says nothing."""
    return [
        series
        for series in history.series
        if any(state_of(point) is CaseState.RIGHT for point in series.points)
        and (
            series.newest.commit != history.commits[series.machine][-1]
            or state_of(series.newest) in (CaseState.UNKNOWN, CaseState.UNSUPPORTED)
        )
    ]


def reference(points: Sequence[Point]) -> Point | None:
    """What the newest point is compared with: the last one of another TVM release; None if there is none."""
    *earlier, newest = points
    other = [point for point in earlier if point.tvm and newest.tvm and release(point.tvm) != release(newest.tvm)]
    return other[-1] if other else None


def change(series: Series) -> float | None:
    """Relative change of the latency since `reference`; None if one of the two is not known."""
    before = reference(series.points)
    if before is None or before.wall_ms is None or series.newest.wall_ms is None:
        return None
    return series.newest.wall_ms / before.wall_ms - 1
