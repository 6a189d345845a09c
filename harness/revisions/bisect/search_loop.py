"""From two ends to the first bad revision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.failures import UsageError
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
    looks: list[Inspection]
    """In the order of the line."""

    @property
    def bad(self) -> str:
        """The first revision that is known to be bad."""
        return self.candidates[-1]


def find_first_bad(line: Sequence[str], judge: Judge, kept: BisectionStore, say: Callable[[str], None]) -> SearchResult:
    """Verify both ends, then look at revisions in between. Raises UsageError if an end is not what it should be."""

    def look(name: str, told: str) -> Inspection:
        if name not in kept.looks:
            say(f"looking at {name} ({told})")
            found = judge.look(name, list(kept.looks.values()))
            say(f"{name} is {_said(found)}")
            kept.add(found)
        return kept.looks[name]

    _require(look(line[0], "it should be good"), RevisionState.GOOD, judge.reason)
    _require(look(line[-1], "it should be bad"), RevisionState.BAD, judge.reason)
    search = Search(line)
    while name := search.next:
        found = look(name, f"about {search.looks_left} to go, {len(search.candidates)} candidates")
        search = Search(line, {**search.known, name: found.state})
    looks = [kept.looks[name] for name in line if name in kept.looks]
    return SearchResult(judge.reason, search.good, search.candidates, looks)


def _require(look: Inspection, state: RevisionState, reason: Reason) -> None:
    if look.state is not state:
        other = "an earlier" if state is RevisionState.GOOD else "a later"
        raise UsageError(
            f"--{state.value} {look.name} is not {state.value} ({reason.value} is what is looked for): {_said(look)}",
            hint=f"name {other} revision, or another --reason",
        )


def _said(look: Inspection) -> str:
    if look.state is RevisionState.SKIP:
        return f"not to be told: {look.outcome}: {look.why}"
    return ": ".join(part for part in (look.state.value, look.outcome, look.why) if part)
