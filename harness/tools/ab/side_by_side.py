"""Two requests side by side: which cases are pairs, their sessions in turns on one device, and which one is faster.

The engine is that of `gate`, and each case is judged by its own truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from device_runner.failures import Failure
from harness.base.case import Case
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.base.plan import Plan
from harness.compile.artifacts.artifact import Built
from harness.judge.compare import Comparison, compare_sides, joined_probes, probes_by_rig
from harness.judge.confirm import MOST_SESSIONS, Explain, SessionBudget, explainer, settle
from harness.judge.in_turns import Measure
from harness.judge.sides import SeriesKey, Side, Sides, side_of
from harness.judge.stats.controls import blindness
from harness.judge.stats.pair import Rules
from harness.judge.stats.shares import LARGEST_SHARE, share_interval, signed_share
from harness.judge.stats.turns import Arm
from harness.judge.verdict import Verdict
from harness.measure.case_worker import run_with_recovery
from harness.measure.probes.reference import FACTOR
from harness.measure.progress import Progress
from harness.measure.records.record import Record
from harness.measure.work import open_work
from harness.measure.workbench import Request, make_ready, open_workbench
from harness.tools.shared.comparison_view import ComparisonView

AXES = ("model", "path", "precision", "tuning")
BOTH = ("a", "b")
"""What the sides are called where they differ in nothing that a case names."""


CasePair = Mapping[Arm, Case]


@dataclass(frozen=True)
class Pairing:
    """Cases of two requests, side by side."""

    pairs: tuple[CasePair, ...]
    differences: tuple[str, ...]
    """Axes in which the sides differ; in the others a pair has one value."""
    names: tuple[str, str]
    """What people call base and head."""

    def of_head(self, case_id: str) -> CasePair:
        """Return the pair of a case of head, by its id."""
        return next(pair for pair in self.pairs if pair[Arm.HEAD].id == case_id)

    def common(self, pair: CasePair) -> str:
        """Return what both cases of a pair are: the path, and whatever else tells this pair from others."""
        axes = [axis for axis in AXES if axis not in self.differences]
        telling = [axis for axis in axes if axis == "path" or len({_value(p[Arm.HEAD], axis) for p in self.pairs}) > 1]
        return " ".join(_value(pair[Arm.HEAD], axis) for axis in telling) or pair[Arm.HEAD].id


def pair_cases(base: Request, head: Request) -> Pairing:
    """Pair the cases of two requests. Raises UsageError where more than one case could be meant."""
    cases = list(base.cases), list(head.cases)
    differences = tuple(axis for axis in AXES if len({frozenset(_values(side, axis)) for side in cases}) > 1)
    for axis in differences:
        for side in cases:
            if len(values := _values(side, axis)) > 1:
                message = f"the sides differ in the {axis}, and one of them has {', '.join(sorted(values))}"
                raise UsageError(message, hint=f"name one {axis} for each side")

    def key(case: Case) -> tuple[str, ...]:
        return tuple(_value(case, axis) for axis in AXES if axis not in differences)

    heads = {key(case): case for case in cases[1]}
    pairs = tuple({Arm.BASE: case, Arm.HEAD: heads[key(case)]} for case in cases[0] if key(case) in heads)
    if not pairs:
        raise UsageError("the two sides have no case in common", hint="name the same paths for both")
    names = tuple(" ".join(_value(side[0], axis) for axis in differences) for side in cases)
    return Pairing(pairs, differences, _without_options(base, head) if names[0] == names[1] else (names[0], names[1]))


def _without_options(base: Request, head: Request) -> tuple[str, str]:
    shipped = [request.quirks.as_shipped for request in (base, head)]
    if shipped[0] is shipped[1]:
        return BOTH
    names = ["as shipped" if alone else "with workarounds" for alone in shipped]
    return names[0], names[1]


def _values(cases: Sequence[Case], axis: str) -> set[str]:
    return {_value(case, axis) for case in cases}


def _value(case: Case, axis: str) -> str:
    return dict(zip(AXES, case.id.split("-"), strict=True))[axis]


MeasureArm = Callable[[CasePair, Arm], Record]
"""Runs one side of a pair in a fresh session."""
Records = Mapping[SeriesKey, Mapping[Arm, "list[Record]"]]
"""Every session, by the series of head."""


def measure_side_by_side(
    base: Request,
    head: Request,
    device: str,
    rules: Rules,
    progress: Progress,
    *,
    minutes: float = 20.0,
    most_sessions: int = MOST_SESSIONS,
    keep: Callable[[Arm, Record], None] = lambda *_: None,
    page: Path | None = None,
) -> ComparisonView:
    """Measure the cases of two requests in turns until each pair is decided, or the time is up.

    Args:
        base: What `head` is compared with.
        head: What is judged.
        device: Name of one device.
        rules: Which change matters.
        progress: Hears what goes on.
        minutes: Time for sessions in turns.
        most_sessions: Maximum number of sessions of a pair.
        keep: Hears each record.
        page: HTML page to write.
    """
    pairing = pair_cases(base, head)
    requests = {Arm.BASE: base, Arm.HEAD: head}
    with open_workbench(base, device, progress) as bench:
        make_ready(head.paths, head.cache)
        identity = bench.device.identity
        plans = {arm: {plan.case: plan for plan in requests[arm].plans(identity)} for arm in Arm}
        chosen = [plans[arm][case] for pair in pairing.pairs for arm, case in pair.items()]
        built = bench.builder.build(job for plan in chosen for job in plan.jobs)
        runs = {
            arm: replace(bench.run, as_shipped=request.quirks.as_shipped, models=request.models)
            for arm, request in requests.items()
        }

        def measure(pair: CasePair, arm: Arm) -> Record:
            record = run_with_recovery(plans[arm][pair[arm]], built, runs[arm], progress)
            keep(arm, record)
            progress.done(record)
            return record

        def plans_of(comparison: Comparison) -> Mapping[Arm, Plan]:
            return {arm: plans[arm][case] for arm, case in pairing.of_head(comparison.key.case).items()}

        progress.begin(2 * len(pairing.pairs))
        budget = SessionBudget(minutes, say=progress.say)
        explain = explainer("side by side", plans_of, built, runs, progress)
        differences = {
            pair[Arm.HEAD].id: how_answers_differ({arm: plans[arm][case] for arm, case in pair.items()}, built)
            for pair in pairing.pairs
        }
        verdicts, records = judge_in_turns(pairing, measure, rules, budget, most_sessions, explain, differences)
    if page:
        _write_page(page, records, verdicts)
    return verdicts


def judge_in_turns(
    pairing: Pairing,
    measure: MeasureArm,
    rules: Rules,
    budget: SessionBudget | None = None,
    most_sessions: int = MOST_SESSIONS,
    explain: Explain | None = None,
    differences: Mapping[str, str] = MappingProxyType({}),
) -> tuple[ComparisonView, Records]:
    """Measure both sides of each pair once, then in turns what that leaves open. Returns the sessions as well.

    `differences` say, by cases of head, how its right answer differs from that of base.
    """
    budget = budget or SessionBudget()
    records: dict[SeriesKey, dict[Arm, list[Record]]] = {}
    pairs: dict[SeriesKey, CasePair] = {}
    began = budget.now()
    for pair in pairing.pairs:
        first = {arm: [measure(pair, arm)] for arm in Arm}
        key = SeriesKey.of(first[Arm.HEAD][0])
        records[key], pairs[key] = first, pair
    least_s = (budget.now() - began) / len(pairing.pairs)
    if 0 < 60 * budget.minutes < least_s:
        budget.say(
            f"the fewest sessions that tell anything take about {least_s:.0f} s more: longer than --minutes says"
        )

    def measurer(comparison: Comparison) -> Measure:
        def again(arm: Arm) -> Record:
            record = measure(pairs[comparison.key], arm)
            records[comparison.key][arm].append(record)
            return record

        return again

    def blind() -> str:
        return blindness_of(_sides(records, Arm.BASE), _sides(records, Arm.HEAD))

    if any("gpu" in record.emulated for sides in records.values() for record in sides[Arm.HEAD]):
        budget = replace(budget, control=blind)
    compared = compare_sides(_sides(records, Arm.BASE), _sides(records, Arm.HEAD), rules, gauged=False, together=True)
    result = settle(compared, rules, measurer, most_sessions, budget=budget, explain=explain)
    names = pairing.names
    answer = "\n".join(
        sentence(case, names, pairing.common(pairs[case.key]), differences.get(case.key.case, ""))
        for case in result.cases
    )
    return ComparisonView(result, rules, f"base is {names[0]}, head is {names[1]}", answer), records


def _sides(records: Records, arm: Arm) -> dict[SeriesKey, Side]:
    """Return what one arm's sessions say, under the series of head: base has another case."""
    return {key: side_of(sides[arm]) for key, sides in records.items()}


def _write_page(page: Path, records: Records, verdicts: ComparisonView) -> None:
    from harness.judge.report.suite_page import write_report

    builds = [sides[arm] for sides in records.values() for arm in Arm]
    write_report(page, builds, verdicts.export, answer=verdicts.answer)


def how_answers_differ(plans: Mapping[Arm, Plan], built: Built) -> str:
    """Return how the right answer of head differs from that of base; empty if it does not, or is to other inputs."""
    pair = [plans[arm] for arm in (Arm.BASE, Arm.HEAD)]
    if any(plan.program for plan in pair) or len({plan.oracle.key for plan in pair}) == 1:
        return ""
    try:
        want, other = (open_work(plan, built).truth for plan in pair)
    except Failure:
        return ""
    same = len(want.inputs) == len(other.inputs) and all(map(np.array_equal, want.inputs, other.inputs))
    return want.judge(other.expected).complaint if same else ""


def sentence(comparison: Comparison, names: tuple[str, str], where: str, difference: str = "") -> str:
    """Return how many times as fast the faster side is, and whether both are right.

    Args:
        comparison: What the sessions came to.
        names: What people call base and head.
        where: What both have in common, such as the path.
        difference: How the right answer of head differs from that of base.
    """
    if wrong := _faults(comparison, names):
        return f"{wrong} on {where}"
    right = f"; {_correctness(comparison, names)}{difference and f', but they compute something else: {difference}'}"
    change = comparison.change
    if not change or not math.isfinite(change.relative):
        why = "; ".join(comparison.reasons).removeprefix("right on both sides; ")  # which `right` says
        return f"undecided on {where}: {why}{right}"
    base, head = names
    if comparison.verdict is Verdict.SAME:
        within = share_interval(change.low, change.high) if math.isfinite(change.low) else signed_share(change.relative)
        return f"{head} is as fast as {base} on {where}: its time differs by {within}{right}"
    slower = change.relative > 0
    winner, other = (base, head) if slower else (head, base)
    ends = [1 + end for end in (change.relative, change.low, change.high)]
    middle, *ratios = ends if slower else [1 / end if end > 0 else math.inf for end in ends]
    interval = f", {min(ratios):.2f} to {max(ratios):.2f}" if min(ratios) > 0 and max(ratios) < LARGEST_SHARE else ""
    verdict = f"{winner} is {middle:.2f} times as fast as {other} on {where}{interval}{right}"
    return verdict if comparison.verdict.changed else f"undecided, it looks as if {verdict}"


def _faults(comparison: Comparison, names: tuple[str, str]) -> str:
    """Return which sides have no latency, and why; empty if both are right."""
    sides = [(name, side) for name, side in zip(names, (comparison.base, comparison.head), strict=True) if side]
    failed = [(name, side) for name, side in sides if side.outcome is not Outcome.OK]
    faults = [f"{name} is {(side.finding or side.outcome).value} ({side.message})" for name, side in failed]
    if comparison.verdict in (Verdict.WRONG, Verdict.BROKEN) and not faults:
        faults = [f"{names[1]} is {comparison.verdict.value} ({comparison.reasons[0]})"]
    right = [f"{name} is right" for name, side in sides if side.outcome is Outcome.OK]
    return ", ".join([*faults, *(right if len(faults) < len(sides) else [])]) if faults else ""


def _correctness(comparison: Comparison, names: tuple[str, str]) -> str:
    sides = (comparison.base, comparison.head)
    empty = [name for name, side in zip(names, sides, strict=True) if side and side.vacuous]
    return f"both right, which proves nothing of {' and '.join(empty)}" if empty else "both right"


def blindness_of(base: Sides, head: Sides) -> str:
    """Return why no slowness can be seen in these sessions: a kernel made slower is not measured slower.

    Empty if it is.
    """
    probes = joined_probes(probes_by_rig({key: (base[key], side) for key, side in head.items() if key in base}))
    return next(filter(None, (blindness(where, probe, FACTOR) for where, probe in probes.items())), "")
