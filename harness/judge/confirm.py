"""Screen against the baselines, then confirm: a latency that looks changed in one session is a suspicion, no verdict.

Suspects alone are measured again, baseline's build and this one in turns (A B B A), each time in a fresh session, until
a sequential test decides (`harness.judge.stats.sequential`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.judge.comparison import Comparison, Result
from harness.judge.sides import SeriesKey, finding
from harness.judge.stats import pair, sequential
from harness.judge.stats.pair import Change, Rules
from harness.judge.stats.sequential import Decision, Stage
from harness.judge.stats.session import Noise
from harness.judge.verdict import Verdict
from harness.run.outcome import Outcome
from harness.run.record import Record

ALARM_RATE = 0.05
"""Chance of any unjustified alarm in a whole suite that did not change; shared out among its cases."""
MOST_SESSIONS = 16

Measure = Callable[[sequential.Arm], Record]
"""Runs one side of a suspect in a fresh session."""


def judge(
    result: Result,
    rules: Rules,
    measurer: Callable[[Comparison], Measure | str] | None = None,
    most_sessions: int = MOST_SESSIONS,
    noises: Mapping[SeriesKey, Noise] | None = None,
) -> Result:
    """Settle what one comparison with the baselines left open.

    `measurer` gives the means to measure a suspect again, or the reason why there are none; `noises` is what
    calibration knows. In an unfit run nothing passes by lying near its baseline.
    """
    plan = confirmation(rules, most_sessions, len(result.cases))
    unfit = result.fitness.fit is False
    cases = [_settle(case, plan, measurer, (noises or {}).get(case.key), unfit=unfit) for case in result.cases]
    return replace(result, cases=cases)


def confirmation(rules: Rules, most_sessions: int, cases: int) -> sequential.ConfirmationPlan:
    """How sure the confirmation of one of so many cases has to be."""
    alpha = min(sequential.ConfirmationPlan().alpha, ALARM_RATE / max(1, cases))
    return sequential.ConfirmationPlan(rules, alpha=alpha, most_sessions=most_sessions)


def suspected(comparison: Comparison, rules: Rules) -> Verdict | None:
    """`slower` or `faster` if an undecided latency lies off its baseline by what is relevant; None if it does not."""
    base, head = comparison.base, comparison.head
    if comparison.verdict is not Verdict.INCONCLUSIVE or not comparison.change or not base or not head:
        return None
    moved = math.log(head.location_ms / base.location_ms)
    if not abs(moved) >= rules.relevant_log(base.location_ms):
        return None
    return Verdict.SLOWER if moved > 0 else Verdict.FASTER


def _settle(
    comparison: Comparison,
    plan: sequential.ConfirmationPlan,
    measurer: Callable[[Comparison], Measure | str] | None,
    noise: Noise | None,
    *,
    unfit: bool,
) -> Comparison:
    suspicion = suspected(comparison, plan.rules)
    if suspicion is None:
        return comparison if unfit else _passed(comparison, plan.rules)
    looks = f"looks {suspicion.value}, which one session cannot prove"
    if comparison.base and comparison.head and comparison.base.artifact == comparison.head.artifact:
        return _because(comparison, f"{looks}; the artifact is the same, so the compiler did not do it")
    if measurer is None:
        return _because(comparison, f"{looks}; a gate without --from measures again")
    measure = measurer(comparison)
    if isinstance(measure, str):
        return _because(comparison, f"{looks}; {measure}")
    return confirm(comparison, suspicion, plan, measure, _believed(noise, comparison))


def _believed(noise: Noise | None, comparison: Comparison) -> Noise | None:
    """What calibration knows, unless the sessions that raised the suspicion say that the rig is noisier by now."""
    if not noise or not comparison.base or not comparison.head:
        return None
    return None if pair.contradicted(noise, comparison.base.sessions, comparison.head.sessions) else noise


def confirm(
    comparison: Comparison,
    suspicion: Verdict,
    plan: sequential.ConfirmationPlan,
    measure: Measure,
    noise: Noise | None = None,
) -> Comparison:
    """Measure in turns until it is decided, or until a session does not end well."""
    taken: dict[sequential.Arm, list[list[float]]] = {side: [] for side in sequential.Arm}
    while True:
        base, head = taken[sequential.Arm.BASE], taken[sequential.Arm.HEAD]
        decision = sequential.decide(base, head, suspicion, plan, noise)
        if decision.next is None:
            return _decided(comparison, suspicion, decision)
        record = measure(decision.next)
        if record.outcome is not Outcome.OK:
            reason = f"{decision.next.value} again: {record.outcome.value}: {record.message}"
            found = finding(record.outcome) if decision.next is sequential.Arm.HEAD else None
            return _because(comparison, reason, found or Verdict.INCONCLUSIVE)
        taken[decision.next].append(record.wall_ms)


def _decided(comparison: Comparison, suspicion: Verdict, decision: Decision) -> Comparison:
    count = f"{sum(decision.sessions)} fresh sessions in turns"
    change = Change(Verdict.INCONCLUSIVE, decision.relative, p=decision.p, sessions=decision.sessions)
    if decision.stage is Stage.CONFIRMED:
        change = replace(change, verdict=suspicion, confidence=1 - decision.p)
        return _with(comparison, suspicion, change, (f"confirmed by {count}", *decision.reasons))
    if decision.stage is Stage.REFUTED:
        change = replace(change, verdict=Verdict.SAME, confidence=1 - sequential.ConfirmationPlan().beta)
        reason = f"looked {suspicion.value}, refuted by {count}"
        return _with(comparison, Verdict.SAME, change, (reason, *decision.reasons))
    return _with(comparison, Verdict.INCONCLUSIVE, change, (f"looked {suspicion.value}", *decision.reasons))


def _passed(comparison: Comparison, rules: Rules) -> Comparison:
    """An undecided latency that lies near its baseline has passed the screen, without being proved the same."""
    base, head = comparison.base, comparison.head
    undecided = comparison.verdict is Verdict.INCONCLUSIVE and comparison.change
    if not undecided or not base or not head or not math.isfinite(base.location_ms / head.location_ms):
        return comparison
    relevant = math.expm1(rules.relevant_log(base.location_ms))
    return replace(
        comparison, verdict=Verdict.SAME, reasons=(f"off by less than the relevant {relevant:.1%}; not measured again",)
    )


def _because(comparison: Comparison, reason: str, verdict: Verdict = Verdict.INCONCLUSIVE) -> Comparison:
    return replace(comparison, verdict=verdict, reasons=(reason, *comparison.reasons))


def _with(comparison: Comparison, verdict: Verdict, change: Change, reasons: tuple[str, ...]) -> Comparison:
    return replace(comparison, verdict=verdict, change=change, reasons=reasons)
