"""From two ends to the first bad revision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.failures import UsageError
from harness.revisions.bisect.judging import Judge, Look, Reason
from harness.revisions.bisect.question import Kept
from harness.revisions.bisect.search import Search, State


@dataclass(frozen=True)
class Found:
    """What a bisection came to."""

    reason: Reason
    good: str
    """The last revision that is known to be good."""
    candidates: list[str]
    """The first bad revision; or those that it may be, because some could not be judged. The last one is bad."""
    looks: list[Look]
    """In the order of the line."""

    @property
    def bad(self) -> str:
        """The first revision that is known to be bad."""
        return self.candidates[-1]


def hunt(line: Sequence[str], judge: Judge, kept: Kept, say: Callable[[str], None]) -> Found:
    """Verify both ends, then look at revisions in between. Raises UsageError if an end is not what it should be."""

    def look(name: str, told: str) -> Look:
        if name not in kept.looks:
            say(f"looking at {name} ({told})")
            found = judge.look(name, list(kept.looks.values()))
            say(f"{name} is {_said(found)}")
            kept.add(found)
        return kept.looks[name]

    _require(look(line[0], "it should be good"), State.GOOD, judge.reason)
    _require(look(line[-1], "it should be bad"), State.BAD, judge.reason)
    search = Search(line)
    while name := search.next:
        found = look(name, f"about {search.looks_left} to go, {len(search.candidates)} candidates")
        search = Search(line, {**search.known, name: found.state})
    looks = [kept.looks[name] for name in line if name in kept.looks]
    return Found(judge.reason, search.good, search.candidates, looks)


def _require(look: Look, state: State, reason: Reason) -> None:
    if look.state is not state:
        other = "an earlier" if state is State.GOOD else "a later"
        raise UsageError(
            f"--{state.value} {look.name} is not {state.value} ({reason.value} is what is looked for): {_said(look)}",
            hint=f"name {other} revision, or another --reason",
        )


def _said(look: Look) -> str:
    if look.state is State.SKIP:
        return f"not to be told: {look.outcome}: {look.why}"
    return ": ".join(part for part in (look.state.value, look.outcome, look.why) if part)
