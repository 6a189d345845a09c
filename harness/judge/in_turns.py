"""One series measured in turns: this build and its base, each in fresh sessions, until the engine decides.

Both clocks judge it: the whole inference by the host's (`wall_ms`), its kernels by the device's (`device_ms`). The
kernels' clock is the steadier one by far on most GPUs, so it finds a smaller change; only the wall clock knows the
whole. Each gets half of the chance of a false alarm.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from msgspec import structs

from harness.base.outcome import Outcome
from harness.base.tables import counted
from harness.judge.sides import Histogram, Side, clock_difference, finding, histogram_of, setting_difference
from harness.judge.stats.engine import FEWEST_TURNS, TurnPlan, judge_turns, turns_of
from harness.judge.stats.pair import Change
from harness.judge.stats.session import Noise
from harness.judge.stats.turns import BLOCK, Arm, Turn, order
from harness.judge.verdict import Verdict
from harness.measure.progress import Clock
from harness.measure.records.record import Record

SUSPICIOUS = 0.5
"""Share of the relevant change beyond which a series is a suspect: measured first, but not decided by it."""

Measure = Callable[[Arm], Record]
"""Runs one side in a fresh session."""
KERNELS = "device_ms"


@dataclass(frozen=True)
class Confirmation:
    """Result of fresh sessions."""

    verdict: Verdict
    """`slower`, `faster` or `same`; `wrong` or `broken` if head is; `inconclusive` if it stayed undecided."""
    reasons: tuple[str, ...]
    change: Change | None = None
    """Change of the latency; None if a session failed."""


@dataclass
class TurnSeries:
    """A series that is being measured. Sessions just before it (`begun`) count, in the order taken."""

    name: str
    """Seeds the order of its sessions."""
    plan: TurnPlan
    measure: Measure
    noise: Noise | None = None
    kernels_noise: Noise | None = None
    """Noise of the kernels' clock."""
    begun: Sequence[tuple[Arm, Side]] = ()
    now: Clock = time.monotonic
    turns: list[Turn] = field(default_factory=list)
    """Turns by the wall clock."""
    kernels: list[Turn] = field(default_factory=list)
    """The same by the kernels' clock; fewer where a session has none."""
    change: Change = field(default_factory=lambda: Change(Verdict.INCONCLUSIVE))
    lost: Confirmation | None = None
    """Failure that ended it early."""
    spent_s: float = 0.0
    fresh: int = 0
    """Number of sessions that were run for it."""

    def __post_init__(self) -> None:
        self._clocks: dict[Arm, list[Histogram]] = {arm: [] for arm in Arm}
        self._settings = [side.settings for _, side in self.begun]
        for arm, side in self.begun:
            self._clocks[arm] += side.clocks
            self.turns += turns_of([(arm, samples_ms) for samples_ms in side.sessions], self.noise)
            self.kernels += turns_of([(arm, samples_ms) for samples_ms in side.device_sessions], self.kernels_noise)
        self._order: Iterator[Arm] = order(self.name, [turn.arm for turn in self.turns])
        self.change = judge_both(self.turns, self.kernels, self.plan, self.noise, self.kernels_noise)

    @property
    def open(self) -> bool:
        """Whether another session may decide it."""
        return not self.lost and not self.change.decided and len(self.turns) < self.plan.looks * BLOCK

    @property
    def suspect(self) -> bool:
        """Whether it differs from its base by `SUSPICIOUS` of the relevant change."""
        return abs(self.change.relative) >= SUSPICIOUS * self.change.relevant

    @property
    def session_s(self) -> float:
        """Seconds per session; 0 if none was run."""
        return self.spent_s / self.fresh if self.fresh else 0.0

    @property
    def missing(self) -> int:
        """Number of sessions up to the next look."""
        return BLOCK - len(self.turns) % BLOCK if self.open else 0

    def block(self) -> None:
        """Take the sessions up to the next look."""
        sessions = list(islice(self._sessions(), self.missing))
        self.turns += turns_of([(arm, record.wall_ms) for arm, record in sessions], self.noise)
        kernels = [(arm, record.device_ms) for arm, record in sessions if record.device_ms]
        self.kernels += turns_of(kernels, self.kernels_noise)
        self.change = judge_both(self.turns, self.kernels, self.plan, self.noise, self.kernels_noise)

    def _sessions(self) -> Iterator[tuple[Arm, Record]]:
        """Fresh sessions for ever, until one does not end well."""
        while True:
            arm, began = next(self._order), self.now()
            record = self.measure(arm)
            self.spent_s, self.fresh = self.spent_s + self.now() - began, self.fresh + 1
            if record.outcome is not Outcome.OK:
                verdict = finding(record.outcome) if arm is Arm.HEAD else None
                reason = f"{arm.value} again: {record.outcome.value}: {record.message}"
                self.lost = Confirmation(verdict or Verdict.INCONCLUSIVE, (reason,))
                return
            self._settings.append(record.settings)
            if other := setting_difference(self._settings):
                self.lost = Confirmation(Verdict.INCONCLUSIVE, (other,))
                return
            self._clocks[arm].append(histogram_of(record))
            yield arm, record

    @property
    def confirmation(self) -> Confirmation:
        """The result so far."""
        if self.lost:
            return self.lost
        count = (f"{counted(len(self.turns), 'session')} in turns",) if self.turns else ()
        change = structs.replace(self.change, reasons=(*count, *self.change.reasons))
        if difference := clock_difference(self._clocks[Arm.BASE], self._clocks[Arm.HEAD]):  # turns cannot take that out
            change = change.without_proof(difference)
        return Confirmation(change.verdict, change.reasons, change)


def judge_both(
    wall: Sequence[Turn],
    kernels: Sequence[Turn],
    plan: TurnPlan,
    noise: Noise | None = None,
    kernels_noise: Noise | None = None,
) -> Change:
    """Judge the same sessions by both clocks; by the wall clock alone, unless every session has both.

    A change by the wall clock comes first. Where that clock excludes one, the kernels' is followed for as long as the
    plan's sessions can decide it, which a single block of them does not tell. Of what was learned of the kernels' clock
    the location alone counts: its noise may differ much from run to run (a session in ten far off, say), and would take
    from what a steady run can show.
    """
    if len(kernels) < len(wall) or not wall:
        return judge_turns(wall, plan, noise)
    half = replace(plan.rules, alpha=plan.rules.alpha / 2)
    finer = replace(half, relevant=min(half.relevant, half.relevant_kernels), floor_ms=0.0)
    whole = judge_turns(wall, replace(plan, rules=half), noise)
    located = replace(kernels_noise, df=0.0) if kernels_noise else None
    inner = judge_turns(kernels, replace(plan, rules=finer), located)
    if whole.verdict.changed or (not whole.decided and not inner.verdict.changed):
        return whole
    if inner.verdict.changed:
        return structs.replace(inner, clock=KERNELS, reasons=(f"by the kernels' clock ({KERNELS})", *inner.reasons))
    left = plan.most_sessions - len(wall)
    hopeless = inner.more_sessions is None or (len(wall) >= FEWEST_TURNS and inner.more_sessions > left)
    if inner.decided or hopeless:
        return whole
    return structs.replace(whole, verdict=Verdict.INCONCLUSIVE, confidence=0.0, more_sessions=inner.more_sessions)
