"""One series measured in turns: this build and its base, each in fresh sessions, until the engine decides."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from harness.judge.clocks import Histogram, histogram_of, ran_apart
from harness.judge.sides import Side, finding
from harness.judge.stats.engine import Plan, judge_turns, turn_of
from harness.judge.stats.pair import Change
from harness.judge.stats.session import Noise
from harness.judge.stats.turns import BLOCK, Arm, Turn, order
from harness.judge.verdict import Verdict
from harness.run.outcome import Outcome
from harness.run.record import Record

SUSPICIOUS = 0.5
"""Share of the relevant change beyond which a series is a suspect: measured first, and never proof of anything."""

Measure = Callable[[Arm], Record]
"""Runs one side in a fresh session."""


class Clock(Protocol):
    """Seconds that pass."""

    def __call__(self) -> float:
        """Seconds since some moment."""


@dataclass(frozen=True)
class Confirmation:
    """What fresh sessions came to."""

    verdict: Verdict
    """`slower`, `faster` or `same`; `wrong` or `broken` if head turned out so; `inconclusive` if it stayed open."""
    reasons: tuple[str, ...]
    change: Change | None = None
    """Of the latency; None if a session did not end well."""


@dataclass
class InTurns:
    """A series under way. Sessions that were taken just before (`begun`) count, in the order taken."""

    name: str
    """Seeds the order of its sessions."""
    plan: Plan
    measure: Measure
    noise: Noise | None = None
    begun: Sequence[tuple[Arm, Side]] = ()
    now: Clock = time.monotonic
    turns: list[Turn] = field(default_factory=list)
    change: Change = field(default_factory=lambda: Change(Verdict.INCONCLUSIVE))
    lost: Confirmation | None = None
    """What ended it before its time."""
    spent_s: float = 0.0
    fresh: int = 0
    """Sessions that were run for it."""

    def __post_init__(self) -> None:
        self._clocks: dict[Arm, list[Histogram]] = {arm: [] for arm in Arm}
        for arm, side in self.begun:
            self._clocks[arm] += side.clocks
            for samples_ms in side.sessions:
                self._take(arm, samples_ms)
        self._order: Iterator[Arm] = order(self.name, [turn.arm for turn in self.turns])
        self.change = judge_turns(self.turns, self.plan, self.noise)

    @property
    def open(self) -> bool:
        """Whether another session may decide it."""
        return not self.lost and not self.change.decided and len(self.turns) < self.plan.looks * BLOCK

    @property
    def suspect(self) -> bool:
        """Whether it lies off its base by a good part of what is relevant."""
        return abs(self.change.relative) >= SUSPICIOUS * self.change.relevant

    @property
    def session_s(self) -> float:
        """What a session of it takes; 0 if none was run."""
        return self.spent_s / self.fresh if self.fresh else 0.0

    def block(self) -> None:
        """Take the sessions up to the next look."""
        while self.open:
            self._session()
            if self.lost or len(self.turns) % BLOCK == 0:
                break
        self.change = judge_turns(self.turns, self.plan, self.noise)

    def _session(self) -> None:
        arm, began = next(self._order), self.now()
        record = self.measure(arm)
        self.spent_s, self.fresh = self.spent_s + self.now() - began, self.fresh + 1
        if record.outcome is not Outcome.OK:
            found = finding(record.outcome) if arm is Arm.HEAD else None
            reason = f"{arm.value} again: {record.outcome.value}: {record.message}"
            self.lost = Confirmation(found or Verdict.INCONCLUSIVE, (reason,))
            return
        self._clocks[arm].append(histogram_of(record.steadiness))
        self._take(arm, record.wall_ms)

    def _take(self, arm: Arm, samples_ms: Sequence[float]) -> None:
        self.turns.append(turn_of(arm, samples_ms))

    @property
    def found(self) -> Confirmation:
        """What it came to, so far."""
        if self.lost:
            return self.lost
        told = (f"{len(self.turns)} sessions in turns",) if self.turns else ()
        change = replace(self.change, reasons=(*told, *self.change.reasons))
        if apart := ran_apart(self._clocks[Arm.BASE], self._clocks[Arm.HEAD]):  # turns cannot take that out
            change = change.unproved(apart)
        return Confirmation(change.verdict, change.reasons, change)


def confirm(plan: Plan, measure: Measure, noise: Noise | None = None, name: str = "") -> Confirmation:
    """Measure one series in turns until it is decided, the plan's sessions are spent, or one does not end well."""
    series = InTurns(name, plan, measure, noise)
    while series.open:
        series.block()
    return series.found
