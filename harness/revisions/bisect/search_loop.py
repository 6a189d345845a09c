"""From two ends to the first bad revision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec import structs

from harness.failures import UsageError
from harness.judge.decisions import Decision, End, today
from harness.judge.verdict import Verdict
from harness.revisions.bisect.judging import Inspection, Judge, Reason
from harness.revisions.bisect.question import BisectionStore
from harness.revisions.bisect.search import RevisionState, Search


@dataclass(frozen=True)
class SearchResult:
    """What a bisection came to."""

    reason: Reason
    good: str
    """The last revision that is known to be good."""
    candidates: list[str]
    """The first bad revision; or those that it may be, because some could not be judged. The last one is bad."""
    inspections: list[Inspection]
    """In the order of the line."""

    @property
    def bad(self) -> str:
        """The first revision that is known to be bad."""
        return self.candidates[-1]

    def confirmed(self, case: str, *, as_shipped: bool) -> list[Decision]:
        """The step that it found in turns, for the history; none if it is one of several, or no matter of latency."""
        looked = {one.name: one for one in self.inspections}
        bad = looked.get(self.bad)
        if self.reason is not Reason.SLOWER or len(self.candidates) > 1 or not bad:
            return []
        base, head = (End(looked[name].artifact if name in looked else "", name) for name in (self.good, self.bad))
        found = Decision(bad.identity, case, as_shipped, Verdict.SLOWER, base, head, bad.relative)
        return [structs.replace(found, sessions=bad.sessions, by="bisect", day=today())]


def find_first_bad(line: Sequence[str], judge: Judge, kept: BisectionStore, say: Callable[[str], None]) -> SearchResult:
    """Verify both ends, then inspect revisions in between. Raises UsageError if an end is not what it should be."""

    def inspect(name: str, told: str) -> Inspection:
        if name not in kept.inspections:
            say(f"looking at {name} ({told})")
            found = judge.inspect(name, list(kept.inspections.values()))
            say(f"{name} is {_said(found)}")
            if name in (line[0], line[-1]) and found.state is RevisionState.SKIP:
                return found  # it ends the search; what was in the way may be gone when the same is asked again
            kept.add(found)
        return kept.inspections[name]

    _require(inspect(line[0], "it should be good"), RevisionState.GOOD, judge.reason)
    _require(inspect(line[-1], "it should be bad"), RevisionState.BAD, judge.reason)
    search = Search(line)
    while name := search.next:
        found = inspect(name, f"about {search.inspections_left} to go, {len(search.candidates)} candidates")
        search = Search(line, {**search.known, name: found.state})
    inspections = [kept.inspections[name] for name in line if name in kept.inspections]
    return SearchResult(judge.reason, search.good, search.candidates, inspections)


def _require(inspection: Inspection, state: RevisionState, reason: Reason) -> None:
    if inspection.state is not state:
        other = "an earlier" if state is RevisionState.GOOD else "a later"
        wanted = f"{state.value} ({reason.value} is what is looked for)"
        raise UsageError(
            f"--{state.value} {inspection.name} is not {wanted}: {_said(inspection)}",
            hint=f"name {other} revision, or another --reason",
        )


def _said(inspection: Inspection) -> str:
    if inspection.state is RevisionState.SKIP:
        return f"not judged: {inspection.outcome}: {inspection.why}"
    return ": ".join(part for part in (inspection.state.value, inspection.outcome, inspection.why) if part)
