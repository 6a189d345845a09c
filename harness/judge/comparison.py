"""What a comparison came to, and what it is worth to a shell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from harness.judge.sides import SeriesKey, Side
from harness.judge.stats.controls import Fitness
from harness.judge.stats.pair import Change
from harness.judge.verdict import Verdict
from harness.run.outcome import ExitCode, Owner


@dataclass(frozen=True)
class Comparison:
    """What became of one case. `base` or `head` is None where a side knows nothing of it."""

    key: SeriesKey
    base: Side | None
    head: Side | None
    verdict: Verdict
    reasons: tuple[str, ...] = ()
    change: Change | None = None
    """Of the latency, where both sides have one."""
    suspicion: Verdict | None = None
    """`slower` or `faster` if it looks so and nothing decided it."""
    apart: bool = False
    """Whether base and head were not measured in turns, but one after the other."""
    in_turns: int = 0
    """How many sessions in turns it rests on."""

    def shown_ms(self, side: Literal["base", "head"]) -> float:
        """A side's latency to be read beside the change: of the estimate, or of the side if there is none; or NaN.

        A confirmation's estimate is of its own fresh sessions, which the side does not hold.
        """
        estimated: float = getattr(self.change, f"{side}_ms") if self.change else math.nan
        one: Side | None = getattr(self, side)
        if math.isfinite(estimated) or one is None:
            return estimated
        return one.location_ms

    @property
    def told(self) -> tuple[str, ...]:
        """The reasons, and whatever the verdict, that being right proves nothing, if that is so."""
        worth = self.head.worth if self.head else ""
        return (*self.reasons, worth) if worth and worth not in self.reasons else self.reasons

    @property
    def looked(self) -> bool:
        """Whether its sessions could have shown a change, even if they decide nothing."""
        return self.change is not None and math.isfinite(self.change.sees)

    @property
    def confidence(self) -> float | None:
        """One less the chance of this verdict if it were untrue; None where none can be given."""
        if not self.verdict.tells:
            return None
        return (self.change.confidence or None) if self.change else 1.0


UNGAUGED = Fitness(None, 0.0, 0)


@dataclass(frozen=True)
class Result:
    """All cases of a comparison, and whether the run was fit to judge latencies by."""

    cases: list[Comparison]
    fitness: Fitness = UNGAUGED
    needed_minutes: float = 0.0
    """How many more it would take to decide what is undecided."""

    @property
    def undecided(self) -> list[Comparison]:
        """What looks changed and could not be decided."""
        return [comparison for comparison in self.cases if comparison.suspicion]


def exit_code(result: Result) -> ExitCode:
    """What a comparison is worth to a shell: findings, then failures of the rig, then what looks slower and is open.

    What looks faster and is open is no reason to fail, since `faster` is none. Nor is a case that is open and looks
    like neither, as long as its sessions could have shown something.
    """
    verdicts = {comparison.verdict for comparison in result.cases}
    if verdicts & {Verdict.WRONG, Verdict.BROKEN}:
        return ExitCode.WRONG_OR_BROKEN
    if Verdict.SLOWER in verdicts:
        return ExitCode.SLOWER
    lost = any(c.head and c.head.outcome.owner in (Owner.DEVICE, Owner.RIG) for c in result.cases)
    if lost or result.fitness.fit is False:
        return ExitCode.RIG_FAILURE
    if any(comparison.suspicion is Verdict.SLOWER for comparison in result.undecided):
        return ExitCode.UNDECIDED
    looked = any(case.verdict.tells or case.looked for case in result.cases)
    return ExitCode.GOOD if looked else ExitCode.NOTHING_MEASURED
