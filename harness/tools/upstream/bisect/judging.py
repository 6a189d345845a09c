"""Whether a revision is good or bad or cannot be judged, and by what evidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from device_runner.disk import DISK_FULL
from device_runner.failures import RigFailure
from device_runner.store import key_of
from harness.base.outcome import Outcome
from harness.judge.in_turns import TurnSeries
from harness.judge.noise import learn
from harness.judge.sides import SeriesKey, finding
from harness.judge.stats.engine import TurnPlan
from harness.judge.stats.pair import Change, finite
from harness.judge.stats.session import Noise, location_ms
from harness.judge.stats.turns import Arm
from harness.judge.verdict import Verdict
from harness.measure.records.record import Record
from harness.tools.shared.environment import InstallFailure
from harness.tools.shared.revision_search import RevisionState
from harness.tools.shared.toolchain import ATTEMPTS, CaseBuild

NOT_INSTALLABLE = "does not build"
NOT_FITTING = "does not fit"
"""What this harness knows of the compiler is not so in this commit."""


class Reason(str, Enum):
    """What went bad."""

    WRONG = "wrong"
    BROKEN = "broken"
    SLOWER = "slower"


class RevisionRunner(Protocol):
    """One revision, ready to be used: a `harness.tools.shared.toolchain.Toolchain`, or a fake of the tests."""

    def build(self, cases: Sequence[str]) -> dict[str, CaseBuild]:
        """Compile cases."""

    def run(self, cases: Sequence[str]) -> list[Record]:
        """Run each case in a fresh session."""


Opener = Callable[[str], RevisionRunner]
"""Makes a revision ready. Raises InstallFailure."""


@dataclass(frozen=True)
class Inspection:
    """What was found out about a revision. Plain JSON values, but for `state`."""

    name: str
    state: RevisionState
    outcome: str
    why: str = ""
    identity: str = ""
    artifact: str = ""
    library: str = ""
    """SHA-256; equal libraries are judged once."""
    kernels: str = ""
    """Hash of the OpenCL source; empty if there is none."""
    sessions: int = 0
    """How many were run for it, the good revision's included."""
    wall_ms: float | None = None
    good_ms: float | None = None
    """Latency of the good revision in the same sessions in turns; None where one session decides."""
    relative: float | None = None
    """Change from `good_ms` to `wall_ms`, as a fraction."""


@dataclass(frozen=True)
class RevisionJudge:
    """Inspects revisions by one case."""

    case: str
    reason: Reason
    good: str
    """The good end, which latencies are compared with."""
    open: Opener
    plan: TurnPlan
    """Plan for the bad end; revisions between have an easier question (`_plan_for`)."""
    keep: Callable[[Record], None] = lambda _: None
    records: Callable[[], Sequence[Record]] = tuple
    """All sessions of this bisection so far: they tell its noise."""
    kernels: Callable[[str], str] = lambda _: ""
    """OpenCL source of an artifact; empty if there is none."""

    def inspect(self, name: str, earlier: Sequence[Inspection]) -> Inspection:
        """Judge one revision: not at all if it makes a library that was judged before. Raises RigFailure."""
        try:
            runner = self.open(name)
        except InstallFailure as failure:
            return Inspection(name, RevisionState.SKIP, NOT_INSTALLABLE, failure.message)
        build = self._built(runner)
        _require_same(build.identity, [inspection.identity for inspection in earlier if inspection.identity])
        if not build.outcome.conclusive:
            return Inspection(name, RevisionState.SKIP, NOT_FITTING, build.message)
        source = self.kernels(build.artifact)
        inspection = Inspection(
            *(name, RevisionState.SKIP, build.outcome.value, build.message, build.identity),
            *(build.artifact, build.library, key_of({"source": source}) if source else ""),
        )
        if same := self._judged_before(inspection, earlier):
            return same
        if build.outcome is not Outcome.OK:
            return replace(inspection, state=state_of(self.reason, build.outcome))
        if self.reason is Reason.SLOWER and name != self.good:
            return self._in_turns(inspection, runner, self._plan_for(earlier))
        return self._once(inspection, runner)

    def _judged_before(self, inspection: Inspection, earlier: Sequence[Inspection]) -> Inspection | None:
        """Return the verdict on a revision with the same library, or with kernels that tell; None without one."""
        if same := next((other for other in earlier if other.library and other.library == inspection.library), None):
            why = f"made the same library as {same.name}"
        elif same := self._by_kernels(inspection, earlier):
            why = f"made the same kernels as {same.name}; nothing was run"
        else:
            return None
        return replace(inspection, state=same.state, outcome=same.outcome, why=why)

    def _by_kernels(self, inspection: Inspection, earlier: Sequence[Inspection]) -> Inspection | None:
        """One that was judged and made the same kernels, if kernels tell a wrong revision from a right one.

        Where a good and a bad one share their kernels, the fault is in the host's code, and kernels tell nothing.
        Latency depends on the host's code as well, so it is always measured.
        """
        candidates = [other for other in earlier if other.kernels and other.state is not RevisionState.SKIP]
        good, bad = (
            {other.kernels for other in candidates if other.state is state}
            for state in (RevisionState.GOOD, RevisionState.BAD)
        )
        if self.reason is not Reason.WRONG or not good or not bad or good & bad:
            return None
        return next((other for other in candidates if other.kernels == inspection.kernels), None)

    def _once(self, inspection: Inspection, runner: RevisionRunner) -> Inspection:
        record = self._ran(runner, inspection.identity)
        return replace(
            inspection,
            state=state_of(self.reason, record.outcome),
            outcome=record.outcome.value,
            why=record.message,
            sessions=1,
            wall_ms=location_ms(record.wall_ms) if record.wall_ms else None,
        )

    def _plan_for(self, earlier: Sequence[Inspection]) -> TurnPlan:
        """Plan to ask for half of the bad end's change, which is far from nothing and far from all of it.

        So an error of either kind is far rarer than the engine's rules say, and few sessions decide.
        """
        change = next((other.relative for other in earlier if other.state is RevisionState.BAD and other.relative), 0.0)
        half = max(self.plan.rules.relevant, change / 2)
        return replace(self.plan, rules=replace(self.plan.rules, relevant=half))

    def _noises(self, identity: str) -> tuple[Noise | None, Noise | None]:
        """Noise by the wall clock and by the kernels' clock."""
        if not (records := self.records()):
            return None, None
        profile, key = learn(records), SeriesKey(identity, self.case, records[0].as_shipped)
        return profile.noise(key), profile.kernels.noise(key) if profile.kernels else None

    def _in_turns(self, inspection: Inspection, runner: RevisionRunner, plan: TurnPlan) -> Inspection:
        """Measure the good revision and this one in turns until the engine decides."""
        records: dict[Arm, list[Record]] = {arm: [] for arm in Arm}
        runners = {Arm.BASE: self.open(self.good), Arm.HEAD: runner}

        def measure(arm: Arm) -> Record:
            records[arm].append(self._ran(runners[arm], inspection.identity))
            return records[arm][-1]

        noise, kernels = self._noises(inspection.identity)
        series = TurnSeries(inspection.name, plan, measure, noise, kernels)
        while series.open:
            series.block()
        decision = series.confirmation
        change = decision.change or Change(decision.verdict)
        return replace(
            inspection,
            state=_SLOWER.get(decision.verdict, RevisionState.SKIP),
            outcome=records[Arm.HEAD][-1].outcome.value if records[Arm.HEAD] else inspection.outcome,
            why="; ".join(decision.reasons),
            sessions=sum(map(len, records.values())),
            wall_ms=finite(change.head_ms),
            good_ms=finite(change.base_ms),
            relative=finite(change.relative),
        )

    def _built(self, runner: RevisionRunner) -> CaseBuild:
        """Return what it makes of the case.

        After so many attempts an outcome that is not the case's own is the commit's.
        """
        for _ in range(ATTEMPTS):
            build = runner.build([self.case])[self.case]
            if build.outcome.conclusive:
                break
        if build.message.startswith(DISK_FULL):
            raise RigFailure(build.message, hint="free some space; the same command goes on where this ended")
        return build

    def _ran(self, runner: RevisionRunner, identity: str) -> Record:
        (record,) = runner.run([self.case])
        self.keep(record)
        _require_same(record.identity_key, [identity])
        if not record.outcome.conclusive:
            why = f"{self.case} could not be judged: {record.outcome.value}: {record.message}"
            raise RigFailure(why, hint="run the same command to go on where this ended")
        return record


_SLOWER = {
    Verdict.SLOWER: RevisionState.BAD,
    Verdict.SAME: RevisionState.GOOD,
    Verdict.FASTER: RevisionState.GOOD,
}


def state_of(reason: Reason, outcome: Outcome) -> RevisionState:
    """Return what one session's outcome says. Another fault than the one that was asked for hides the answer."""
    if outcome is Outcome.OK:
        return RevisionState.GOOD
    verdict = finding(outcome)
    if reason is Reason.WRONG and verdict is Verdict.WRONG:
        return RevisionState.BAD
    if reason is Reason.BROKEN and verdict:
        return RevisionState.BAD if verdict is Verdict.BROKEN else RevisionState.GOOD  # it built and it ran
    return RevisionState.SKIP


def reason_of(outcome: Outcome) -> Reason:
    """Return what to look for if this is the outcome of the bad end."""
    if verdict := finding(outcome):
        return Reason.WRONG if verdict is Verdict.WRONG else Reason.BROKEN
    return Reason.SLOWER


def _require_same(identity: str, earlier: Sequence[str]) -> None:
    """Raise RigFailure if the device is another one than before: what it says cannot be compared."""
    if earlier and identity != earlier[-1]:
        raise RigFailure(
            f"the device is {identity} now and was {earlier[-1]}",
            hint="bring that one back, or begin anew with --fresh",
        )
