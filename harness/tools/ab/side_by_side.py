"""Measures two requests in turns on one device, by the engine of `gate`, each judged by its own truth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from harness.base.plan import Plan
from harness.judge.compare import Comparison, ComparisonResult, blindness_of, compare_sides
from harness.judge.confirm import MOST_SESSIONS, Explain, SessionBudget, explainer, settle
from harness.judge.in_turns import Measure
from harness.judge.report.verdicts import ComparisonView
from harness.judge.sides import SeriesKey, Side, side_of
from harness.judge.stats.pair import Rules
from harness.judge.stats.turns import Arm
from harness.measure.case_worker import run_with_recovery
from harness.measure.progress import Progress
from harness.measure.records.record import Record
from harness.measure.workbench import Request, make_ready, open_workbench
from harness.tools.ab.answer import sentence
from harness.tools.ab.pairs import CasePair, Pairing, pair_cases

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
        verdicts, records = judge_in_turns(pairing, measure, rules, budget, most_sessions, explain)
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
) -> tuple[ComparisonView, Records]:
    """Measure both sides of each pair once, then in turns what that leaves open. Returns the sessions as well."""
    records: dict[SeriesKey, dict[Arm, list[Record]]] = {}
    pairs: dict[SeriesKey, CasePair] = {}
    for pair in pairing.pairs:
        first = {arm: [measure(pair, arm)] for arm in Arm}
        key = SeriesKey.of(first[Arm.HEAD][0])
        records[key], pairs[key] = first, pair

    def measurer(comparison: Comparison) -> Measure:
        def again(arm: Arm) -> Record:
            record = measure(pairs[comparison.key], arm)
            records[comparison.key][arm].append(record)
            return record

        return again

    def blind() -> str:
        return blindness_of(_sides(records, Arm.BASE), _sides(records, Arm.HEAD))

    budget = budget or SessionBudget()
    if any("gpu" in record.emulated for sides in records.values() for record in sides[Arm.HEAD]):
        budget = replace(budget, control=blind)
    compared = compare_sides(_sides(records, Arm.BASE), _sides(records, Arm.HEAD), rules, gauged=False, together=True)
    result = settle(compared, rules, measurer, most_sessions, budget=budget, explain=explain)
    return ComparisonView(
        result, rules, f"base is {pairing.names[0]}, head is {pairing.names[1]}", _answer(result, pairing, pairs)
    ), records


def _sides(records: Records, arm: Arm) -> dict[SeriesKey, Side]:
    """Return what one arm's sessions say, under the series of head: base has another case."""
    return {key: side_of(sides[arm]) for key, sides in records.items()}


def _answer(result: ComparisonResult, pairing: Pairing, pairs: Mapping[SeriesKey, CasePair]) -> str:
    return "\n".join(sentence(case, pairing.names, pairing.common(pairs[case.key])) for case in result.cases)


def _write_page(page: Path, records: Records, verdicts: ComparisonView) -> None:
    from harness.judge.report.suite_page import write_report

    builds = [sides[arm] for sides in records.values() for arm in Arm]
    write_report(page, builds, verdicts.export, answer=verdicts.answer)
