"""What a revision is: good, bad, or not to be told, and by what evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from device_runner.failures import RigFailure
from harness.judge.compare import Comparison, Key, Verdict, finding
from harness.judge.confirm import confirm
from harness.judge.stats import pair, robust
from harness.judge.stats.sequential import Plan, Side
from harness.revisions.bisect.search import State
from harness.revisions.environment import NotInstallable
from harness.revisions.toolchain import ATTEMPTS, Build
from harness.run.outcome import Outcome
from harness.run.record import Record

NOT_INSTALLABLE = "does not build"


class Reason(str, Enum):
    """What went bad."""

    WRONG = "wrong"
    BROKEN = "broken"
    SLOWER = "slower"


class Bench(Protocol):
    """One revision, ready to be used: `harness.revisions.Toolchain`, or a fake of the tests."""

    def build(self, cases: Sequence[str]) -> dict[str, Build]:
        """Compile cases."""

    def run(self, cases: Sequence[str]) -> list[Record]:
        """Run each case in a fresh session."""


Open = Callable[[str], Bench]
"""Makes a revision ready. Raises NotInstallable."""


@dataclass(frozen=True)
class Look:
    """What looking at a revision found. Plain JSON values, but for `state`."""

    name: str
    state: State
    outcome: str
    why: str = ""
    identity: str = ""
    """Of the device."""
    artifact: str = ""
    library: str = ""
    """SHA-256; equal libraries are judged once."""
    sessions: int = 0
    """How many were run for it, the good revision's included."""
    wall_ms: float | None = None
    relative: float | None = None
    """Change of latency against the good revision, as a fraction."""


@dataclass(frozen=True)
class Judge:
    """Looks at revisions of one case."""

    case: str
    reason: Reason
    good: str
    """The good end, which latencies are compared with."""
    open: Open
    plan: Plan
    keep: Callable[[Record], None] = lambda _: None

    def look(self, name: str, earlier: Sequence[Look]) -> Look:
        """Judge one revision: not at all if it makes a library that was judged before. Raises RigFailure."""
        try:
            bench = self.open(name)
        except NotInstallable as failure:
            return Look(name, State.SKIP, NOT_INSTALLABLE, failure.message)
        build = self._built(bench)
        _require_same(build.identity, [look.identity for look in earlier if look.identity])
        seen = Look(name, State.SKIP, build.outcome.value, build.message, build.identity, build.artifact, build.library)
        if same := next((look for look in earlier if look.library and look.library == build.library), None):
            return replace(seen, state=same.state, outcome=same.outcome, why=f"made the same library as {same.name}")
        if build.outcome is not Outcome.OK:
            return replace(seen, state=state_of(self.reason, build.outcome))
        if self.reason is Reason.SLOWER and name != self.good:
            return self._in_turns(seen, bench)
        return self._once(seen, bench)

    def _once(self, seen: Look, bench: Bench) -> Look:
        record = self._ran(bench, seen.identity)
        return replace(
            seen,
            state=state_of(self.reason, record.outcome),
            outcome=record.outcome.value,
            why=record.message,
            sessions=1,
            wall_ms=_location_ms([record]),
        )

    def _in_turns(self, seen: Look, bench: Bench) -> Look:
        """The good revision and this one, A B B A, until a sequential test decides."""
        taken: dict[Side, list[Record]] = {side: [] for side in Side}
        benches = {Side.BASE: self.open(self.good), Side.HEAD: bench}

        def measure(side: Side) -> Record:
            taken[side].append(self._ran(benches[side], seen.identity))
            return taken[side][-1]

        asked = Comparison(Key(seen.identity, self.case), None, None, Verdict.INCONCLUSIVE)
        found = confirm(asked, pair.Verdict.SLOWER, self.plan, measure)
        relative = found.change.relative if found.change else math.nan
        return replace(
            seen,
            state=_SLOWER.get(found.verdict, State.SKIP),
            outcome=taken[Side.HEAD][-1].outcome.value if taken[Side.HEAD] else seen.outcome,
            why="; ".join(found.reasons),
            sessions=sum(map(len, taken.values())),
            wall_ms=_location_ms(taken[Side.HEAD]),
            relative=relative if math.isfinite(relative) else None,
        )

    def _built(self, bench: Bench) -> Build:
        for _ in range(ATTEMPTS):
            build = bench.build([self.case])[self.case]
            if build.outcome.conclusive:
                return build
        raise RigFailure(f"{self.case} could not be built: {build.message}", hint="run the same command to go on")

    def _ran(self, bench: Bench, identity: str) -> Record:
        (record,) = bench.run([self.case])
        self.keep(record)
        _require_same(record.identity_key, [identity])
        if not record.outcome.conclusive:
            why = f"{self.case} could not be judged: {record.outcome.value}: {record.message}"
            raise RigFailure(why, hint="run the same command to go on where this ended")
        return record


_SLOWER = {Verdict.SLOWER: State.BAD, Verdict.SAME: State.GOOD}


def state_of(reason: Reason, outcome: Outcome) -> State:
    """What one session's outcome says. Another fault than the one that was asked for hides the answer."""
    if outcome is Outcome.OK:
        return State.GOOD
    found = finding(outcome)
    if reason is Reason.WRONG and found is Verdict.WRONG:
        return State.BAD
    if reason is Reason.BROKEN and found:
        return State.BAD if found is Verdict.BROKEN else State.GOOD  # it built and it ran
    return State.SKIP


def reason_of(outcome: Outcome) -> Reason:
    """What there is to look for if this is what the bad end came to."""
    if found := finding(outcome):
        return Reason.WRONG if found is Verdict.WRONG else Reason.BROKEN
    return Reason.SLOWER


def _require_same(identity: str, earlier: Sequence[str]) -> None:
    """What one device says of a revision is nothing to another."""
    if earlier and identity != earlier[-1]:
        raise RigFailure(
            f"the device is {identity} now and was {earlier[-1]}",
            hint="bring that one back, or begin anew with --fresh",
        )


def _location_ms(records: Sequence[Record]) -> float | None:
    medians = [robust.median(record.wall_ms) for record in records if record.wall_ms]
    return robust.median(medians) if medians else None
