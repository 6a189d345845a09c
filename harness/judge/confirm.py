"""The one confirmation engine: a latency that looks changed is a suspicion, and fresh sessions decide it.

`gate`, both kinds of `compare` and `bisect` call it. Suspects alone are measured again, base and head in turns
(A B B A), each time in a fresh session, until a sequential test decides (`harness.judge.stats.sequential`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from harness.judge.clocks import Histogram, histogram_of, ran_apart
from harness.judge.comparison import Comparison, Result
from harness.judge.sides import FEWEST_SESSIONS, SeriesKey, finding, same_build
from harness.judge.stats import pair
from harness.judge.stats.pair import Change, Rules, change_of
from harness.judge.stats.sequential import Arm, ConfirmationPlan, Decision, Stage, decide
from harness.judge.stats.session import Noise
from harness.judge.verdict import Verdict
from harness.run.outcome import Outcome
from harness.run.record import Record

ALARM_RATE = 0.05
"""Chance of any unjustified alarm in a whole suite that did not change; shared out among its cases."""
MOST_SESSIONS = 16

Measure = Callable[[Arm], Record]
"""Runs one arm of a suspect in a fresh session."""
Measurer = Callable[[Comparison], "Measure | str"]
"""Gives the means to measure a suspect again, or the reason why there are none."""


@dataclass(frozen=True)
class Confirmation:
    """What fresh sessions made of a suspicion."""

    verdict: Verdict
    """`slower`, `faster` or `same`; `wrong` or `broken` if head turned out so; `inconclusive` if it stayed open."""
    reasons: tuple[str, ...]
    change: Change | None = None
    """Of the latency; None if a session did not end well."""


def judge(
    result: Result,
    rules: Rules,
    measurer: Measurer,
    most_sessions: int = MOST_SESSIONS,
    noises: Mapping[SeriesKey, Noise] | None = None,
) -> Result:
    """Settle what one comparison left open, by measuring suspects again where `measurer` can.

    `noises` is what calibration knows. In an unfit run nothing is called unchanged because it lies near its base.
    """
    plan = confirmation_plan(rules, most_sessions, len(result.cases))
    unfit = result.fitness.fit is False
    cases = [_settled(case, plan, measurer, (noises or {}).get(case.key), unfit=unfit) for case in result.cases]
    return replace(result, cases=cases)


def confirmation_plan(rules: Rules, most_sessions: int, cases: int) -> ConfirmationPlan:
    """How sure the confirmation of one of so many cases has to be."""
    alpha = min(ConfirmationPlan().alpha, ALARM_RATE / max(1, cases))
    return ConfirmationPlan(rules, alpha=alpha, most_sessions=most_sessions)


def suspected(comparison: Comparison, rules: Rules) -> Verdict | None:
    """`slower` or `faster` if an undecided latency lies off its base by what is relevant; None if it does not."""
    base, head = comparison.base, comparison.head
    if comparison.verdict is not Verdict.INCONCLUSIVE or not comparison.change or not base or not head:
        return None
    moved = math.log(head.location_ms / base.location_ms)
    if not abs(moved) >= rules.relevant_log(base.location_ms):
        return None
    return Verdict.SLOWER if moved > 0 else Verdict.FASTER


def confirm(suspicion: Verdict, plan: ConfirmationPlan, measure: Measure, noise: Noise | None = None) -> Confirmation:
    """Measure in turns until it is decided, or until a session does not end well."""
    taken: dict[Arm, list[list[float]]] = {arm: [] for arm in Arm}
    clocks: dict[Arm, list[Histogram]] = {arm: [] for arm in Arm}
    while True:
        decision = decide(taken[Arm.BASE], taken[Arm.HEAD], suspicion, plan, noise)
        if decision.next is None:
            return _believable(_decided(suspicion, decision, plan), ran_apart(clocks[Arm.BASE], clocks[Arm.HEAD]))
        record = measure(decision.next)
        if record.outcome is not Outcome.OK:
            found = finding(record.outcome) if decision.next is Arm.HEAD else None
            reason = f"{decision.next.value} again: {record.outcome.value}: {record.message}"
            return Confirmation(found or Verdict.INCONCLUSIVE, (reason,))
        taken[decision.next].append(record.wall_ms)
        clocks[decision.next].append(histogram_of(record.steadiness))


def _believable(found: Confirmation, apart: str) -> Confirmation:
    """What turns cannot take out is a clock that goes with the build: then nothing is decided."""
    if not apart:
        return found
    change = found.change.unproved(apart) if found.change else None
    return Confirmation(Verdict.INCONCLUSIVE, (apart, *found.reasons), change)


def _settled(
    comparison: Comparison, plan: ConfirmationPlan, measurer: Measurer, noise: Noise | None, *, unfit: bool
) -> Comparison:
    suspicion, base, head = suspected(comparison, plan.rules), comparison.base, comparison.head
    if suspicion is None:
        return comparison if unfit else _unchanged_so_far(comparison, plan.rules)
    looks = f"looks {suspicion.value}, which {_too_little(comparison)} cannot prove"
    if base and head and base.artifact == head.artifact:
        reason = f"{looks}; the artifact is the same, so the compiler did not do it"
        open_still = None if same_build(base, head) else suspicion  # the runtime may have done it
        return replace(comparison, reasons=(reason, *comparison.reasons), suspicion=open_still)
    measure = measurer(comparison)
    if isinstance(measure, str):
        return replace(comparison, reasons=(f"{looks}; {measure}", *comparison.reasons), suspicion=suspicion)
    found = confirm(suspicion, plan, measure, _believed(noise, comparison))
    return replace(
        comparison,
        verdict=found.verdict,
        change=found.change or comparison.change,
        reasons=found.reasons if found.change else (*found.reasons, *comparison.reasons),
        suspicion=suspicion if found.verdict is Verdict.INCONCLUSIVE else None,
    )


def _too_little(comparison: Comparison) -> str:
    sides = [side for side in (comparison.base, comparison.head) if side]
    return "one session" if min(len(side.sessions) for side in sides) < FEWEST_SESSIONS else "these sessions"


def _believed(noise: Noise | None, comparison: Comparison) -> Noise | None:
    """What calibration knows, unless the sessions that raised the suspicion say that the rig is noisier by now."""
    if not noise or not comparison.base or not comparison.head:
        return None
    return None if pair.contradicted(noise, comparison.base.summary, comparison.head.summary) else noise


def _decided(suspicion: Verdict, decision: Decision, plan: ConfirmationPlan) -> Confirmation:
    count = f"{sum(decision.sessions)} fresh sessions in turns"
    verdict, confidence, told = {
        Stage.CONFIRMED: (suspicion, 1 - decision.p, f"confirmed by {count}"),
        Stage.REFUTED: (Verdict.SAME, 1 - plan.beta, f"looked {suspicion.value}, refuted by {count}"),
    }.get(decision.stage, (Verdict.INCONCLUSIVE, 0.0, f"looked {suspicion.value}"))
    reasons = (told, *decision.reasons)
    if decision.estimate is None:
        return Confirmation(verdict, reasons, Change(verdict, sessions=decision.sessions))
    change = change_of(
        decision.estimate,
        decision.half_width,
        verdict=verdict,
        confidence=confidence,
        p=decision.p,
        sessions=decision.sessions,
    )
    return Confirmation(verdict, reasons, change)


def _unchanged_so_far(comparison: Comparison, rules: Rules) -> Comparison:
    """An undecided latency that lies near its base has passed the screen, without being proved the same."""
    base, head = comparison.base, comparison.head
    undecided = comparison.verdict is Verdict.INCONCLUSIVE and comparison.change
    if not undecided or not base or not head or not math.isfinite(base.location_ms / head.location_ms):
        return comparison
    relevant = math.expm1(rules.relevant_log(base.location_ms))
    reason = f"off by less than the relevant {relevant:.1%}; not measured again"
    return replace(comparison, verdict=Verdict.UNCHANGED_SO_FAR, reasons=(reason,))
