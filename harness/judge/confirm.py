"""Measure undecided cases of a comparison in turns, within a budget.

`gate` and the comparison of revisions call `settle`; `bisect` decides one series at a time
(`harness.judge.in_turns.TurnSeries`). Sessions go first to the cases that look changed, then to those nearest to a
decision.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from msgspec import structs

from device_runner.failures import Failure
from harness.base.tables import counted
from harness.base.tool import added
from harness.judge.compare import Comparison, ComparisonResult, KernelChange, compare_sides
from harness.judge.decisions import MeasuredBuild, PairedDecision, today
from harness.judge.in_turns import SUSPICIOUS, Measure, TurnSeries
from harness.judge.sides import FEWEST_SESSIONS, SeriesKey, Side, Sides, same_artifact, same_build, setting_difference
from harness.judge.stats.controls import Fitness
from harness.judge.stats.engine import TurnPlan
from harness.judge.stats.pair import Rules
from harness.judge.stats.session import Noise
from harness.judge.stats.shares import signed_share
from harness.judge.stats.turns import BLOCK, Arm
from harness.judge.verdict import Verdict
from harness.measure.progress import Clock

ALARM_RATE = 0.05
"""Chance of any unjustified `slower` in a whole suite that did not change; shared out among its cases."""
MOST_SESSIONS = 32

Measurer = Callable[[Comparison], "Measure | str"]
"""Returns how to measure a case in turns, or the reason why that is impossible."""
Explanation = tuple[KernelChange, ...] | str
Explain = Callable[[Comparison], "tuple[KernelChange, ...]"]
"""Watches the kernels of both sides of a case in a session of each. Raises Failure with the reason why it cannot."""


def explainer(command: str, *context: object) -> Explain | None:
    """Return a tool's `Explain` for the command's `context`; None without such a tool."""
    explain = added("explanations", command)
    return partial(explain[0], *context) if explain else None


@dataclass(frozen=True)
class SessionBudget:
    """Time limit for sessions in turns. Of all blocks only the first may end later: how long it takes is not known."""

    minutes: float = math.inf
    now: Clock = time.monotonic
    say: Callable[[str], None] = lambda _: None
    """Called with the series that is measured, how often it was, and the time left, as text."""
    control: Callable[[], str] = lambda: ""
    """Returns why further sessions are useless; empty as long as they are not. Called before each block."""

    @property
    def ends(self) -> float:
        """Time at which it ends, by the clock `now`, if it begins now."""
        return self.now() + 60 * self.minutes


def settle(
    result: ComparisonResult,
    rules: Rules,
    measurer: Measurer,
    most_sessions: int = MOST_SESSIONS,
    noises: Mapping[SeriesKey, Noise] | None = None,
    budget: SessionBudget | None = None,
    kernels: Mapping[SeriesKey, Noise] | None = None,
    explain: Explain | None = None,
) -> ComparisonResult:
    """Measure the open cases of a comparison in turns, where `measurer` can.

    `noises` is the noise of each series, and `kernels` the same of the kernels' clock. `explain` is called once for
    each case that sessions in turns find slower or faster.
    """
    plan, budget = plan_of(rules, most_sessions, len(result.cases)), budget or SessionBudget()
    noises, kernels = noises or {}, kernels or {}
    ways = [(case, _way(case, measurer)) for case in result.cases]
    under_way = {
        case.key: TurnSeries(
            str(case.key), plan, way, noises.get(case.key), kernels.get(case.key), _first_sessions(case), budget.now
        )
        for case, way in ways
        if callable(way)
    }
    by_key = {case.key: case for case, way in ways if callable(way)}
    explained = dict[SeriesKey, Explanation]()

    def decided(key: SeriesKey) -> None:
        if explain:
            budget.say(f"watching the kernels of {key}, base and head")
            explained[key] = _explanation(by_key[key], explain)

    blind = _spend(under_way, {key for key, case in by_key.items() if suspicion_of(case, SUSPICIOUS)}, budget, decided)
    pace = _pace(under_way.values())
    settled = [_settle_case(case, way, under_way.get(case.key), pace) for case, way in ways]
    cases = [_explained(case, explained.get(case.key)) for case in settled] if explained else settled
    if blind:
        reason = f"stopped: more sessions would not help, {blind}"
        stopped = {key for key, series in under_way.items() if series.open}
        cases = [
            structs.replace(c, reasons=(reason, *c.reasons), suspicion=None) if c.key in stopped else c for c in cases
        ]
        return replace(result, cases=cases, fitness=Fitness(fit=False, reasons=(blind,)))
    undecided = [series for series in under_way.values() if not series.lost and not series.change.decided]
    needed_s = sum(_missing(series) * (series.session_s or pace) for series in undecided)
    return replace(result, cases=cases, needed_minutes=needed_s / 60)


def judge_sides(base: Sides, head: Sides, rules: Rules, *, gauged: bool = True) -> ComparisonResult:
    """Compare two sides as they are. Without `gauged`, changes of unchanged builds count as findings as well."""
    compared = compare_sides(base, head, rules, gauged=gauged)
    return settle(compared, rules, lambda _: "what was measured before cannot be measured in turns")


def plan_of(rules: Rules, most_sessions: int, series: int) -> TurnPlan:
    """Return the plan of one of so many series, so that the whole suite keeps to `ALARM_RATE`."""
    return TurnPlan(replace(rules, alpha=min(rules.alpha, ALARM_RATE / max(1, series))), most_sessions)


def suspicion_of(comparison: Comparison, share: float = 1.0) -> Verdict | None:
    """`slower` or `faster` if an undecided latency lies off its base by that share of what is relevant, or more."""
    change = comparison.change
    if comparison.verdict is not Verdict.INCONCLUSIVE or not change:
        return None
    if not abs(change.relative) >= share * change.relevant:
        return None
    return Verdict.SLOWER if change.relative > 0 else Verdict.FASTER


def decisions_of(cases: Iterable[Comparison], by: str, base: str = "", head: str = "") -> list[PairedDecision]:
    """Return what of these was decided in turns. `base` and `head` are the revisions, if a person named any."""
    return [
        PairedDecision(
            case.key.identity,
            case.key.case,
            case.key.as_shipped,
            case.verdict,
            MeasuredBuild(case.base.artifact, base),
            MeasuredBuild(case.head.artifact, head),
            case.change.relative,
            case.change.low,
            case.change.high,
            case.in_turns,
            case.change.clock,
            by,
            today(),
        )
        for case in cases
        if case.in_turns and case.change and case.change.decided and case.base and case.head
    ]


def _way(case: Comparison, measurer: Measurer) -> Measure | str | None:
    """Return the means to measure a case in turns, or why there are none; None where there is nothing left to ask."""
    if not case.change or not case.base or not case.head:
        return None
    if case.verdict is not Verdict.INCONCLUSIVE and not case.in_sequence:
        return None
    if setting_difference([case.base.settings, case.head.settings]):
        return "sessions in turns would have other settings, too"
    if same_artifact(case.base, case.head):
        return "the artifact is the same, so the compiler did not do it"
    return measurer(case)


def _first_sessions(case: Comparison) -> list[tuple[Arm, Side]]:
    """Return the sessions of this occasion: head's, and base's unless they are of another day."""
    sides = ((Arm.BASE, case.base), (Arm.HEAD, case.head))
    return [(arm, side) for arm, side in sides if side and (arm is Arm.HEAD or not case.in_sequence)]


def _explanation(case: Comparison, explain: Explain) -> Explanation:
    """Return the kernels of a case, or why they were not watched."""
    try:
        return explain(case)
    except Failure as failure:
        return f"its kernels were not watched: {failure.message}"


def _explained(case: Comparison, explanation: Explanation | None) -> Comparison:
    if not explanation or not case.verdict.changed:
        return case
    if isinstance(explanation, str):
        return structs.replace(case, reasons=(*case.reasons, explanation))
    longer = sum(kernel.change_ms for kernel in explanation) > 0
    agrees = longer is (case.verdict is Verdict.SLOWER)
    doubt = () if agrees else (f"the sessions that watched its kernels do not show that it is {case.verdict.value}",)
    return structs.replace(case, kernels=explanation, reasons=(*case.reasons, *doubt))


def _spend(
    under_way: Mapping[SeriesKey, TurnSeries],
    screened: Collection[SeriesKey],
    budget: SessionBudget,
    decided: Callable[[SeriesKey], None],
) -> str:
    """Take blocks of sessions where they decide most, until nothing is open or no other block fits into the time.

    `decided` hears of each series as soon as it is slower or faster: then the time is not yet spent on what stays open.
    Returns why it stopped before that, by the budget's control; empty if it did not.
    """
    ends = budget.ends

    def urgency(key: SeriesKey) -> tuple[bool, float, int]:
        series = under_way[key]
        suspect = series.suspect if series.fresh else key in screened
        more = series.change.more_sessions
        return not suspect, math.inf if more is None else more, len(series.turns)

    def needed_s(key: SeriesKey) -> float:
        series = under_way[key]
        return series.missing * (series.session_s or _pace(under_way.values()))

    while (due := [key for key, series in under_way.items() if series.open]) and (left_s := ends - budget.now()) > 0:
        if not (fitting := [key for key in due if needed_s(key) <= left_s]):
            break
        if blind := budget.control():
            return blind
        key = min(fitting, key=urgency)
        series = under_way[key]
        done, most = len(series.turns), series.plan.looks * BLOCK
        left = f", {_minutes(left_s)} left" if math.isfinite(left_s) else ""
        cases = counted(len(due), "case is", "cases are")
        budget.say(f"in turns: {series.name}, {done} of at most {most} sessions; {cases} open{left}")
        series.block()
        if series.change.verdict.changed and not series.lost:
            decided(key)
    return ""


def _settle_case(
    case: Comparison, way: Measure | str | None, series: TurnSeries | None, session_s: float
) -> Comparison:
    if series:
        confirmation = series.confirmation
        change = confirmation.change or case.change
        reasons = confirmation.reasons if confirmation.change else (*confirmation.reasons, *case.reasons)
        settled = structs.replace(
            case, verdict=confirmation.verdict, change=change, reasons=reasons, in_turns=len(series.turns)
        )
        return structs.replace(_with_prospect(settled, series.session_s or session_s), suspicion=suspicion_of(settled))
    if not isinstance(way, str):
        return case
    if case.verdict is not Verdict.INCONCLUSIVE:
        return case
    looks = suspicion_of(case)
    if not looks or not case.base or not case.head:
        return structs.replace(case, reasons=(way, *case.reasons), suspicion=None)
    fewest = min(len(case.base.sessions), len(case.head.sessions))
    sessions = "one session" if fewest < FEWEST_SESSIONS else "these sessions"
    reason = f"looks {looks.value}, which {sessions} cannot prove; {way}"
    unchanged = same_build(case.base, case.head)
    return structs.replace(case, reasons=(reason, *case.reasons), suspicion=None if unchanged else looks)


def _with_prospect(case: Comparison, session_s: float) -> Comparison:
    """Say what an undecided case could have shown, and what it takes to see what is relevant."""
    change = case.change
    if case.verdict is not Verdict.INCONCLUSIVE or not change or not math.isfinite(change.sees):
        return case
    prospect = f"can see {signed_share(change.sees).replace('+', '')} here"
    if change.more_sessions:
        minutes = f" ({_minutes(change.more_sessions * session_s)})" if session_s else ""
        prospect += f"; {change.relevant:.1%} with {change.more_sessions} more sessions{minutes}"
    return structs.replace(case, reasons=(prospect, *case.reasons))


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} s"


def _pace(series: Iterable[TurnSeries]) -> float:
    """Return what a session takes on the average, in seconds; 0 if none was run."""
    run = [entry for entry in series if entry.fresh]
    return sum(entry.spent_s for entry in run) / sum(entry.fresh for entry in run) if run else 0.0


def _missing(series: TurnSeries) -> int:
    """Return how many more sessions would decide a series, and no more than it may cost: few tell its noise badly."""
    left, more = max(0, series.plan.looks * BLOCK - len(series.turns)), series.change.more_sessions
    return left if more is None else min(more, left)
