"""The verdict on a bundle with two builds, by the gate's own engine: the sessions were run in the order it asks for."""

from __future__ import annotations

from collections.abc import Iterator

from harness.judge.compare import Comparison, ComparisonResult, compare_sides
from harness.judge.confirm import settle
from harness.judge.in_turns import Measure
from harness.judge.sides import sides_of
from harness.judge.stats.pair import Rules
from harness.judge.stats.turns import BLOCK, Arm
from harness.measure.records.record import Record
from harness.tools.bundle.manifest import BASE, HEAD, BundleTurn
from harness.tools.bundle.results import BundleResults


def verdicts_of(results: BundleResults, rules: Rules) -> ComparisonResult:
    """Return the verdict on each case from base to head.

    Nothing is run: `judge` takes the sessions in which they were run.
    """
    first: dict[BundleTurn, Record] = {}
    later: dict[str, list[tuple[BundleTurn, Record]]] = {}
    for turn, record in results.turns:
        if turn in first:
            later.setdefault(turn.case, []).append((turn, record))
        else:
            first[turn] = record
    base, head = (
        sides_of(
            [record.model_copy(update={"compiled_with": None}) for turn, record in first.items() if turn.build == name]
        )
        for name in (BASE, HEAD)
    )
    compared = compare_sides(base, head, rules, together=True)
    most = min((len(sessions) for sessions in later.values()), default=0) + 2

    def measurer(comparison: Comparison) -> Measure | str:
        sessions = later.get(comparison.key.case, [])
        return _replayed(iter(sessions)) if sessions else "one session of each build was run"

    return settle(compared, rules, measurer, max(BLOCK, most - most % BLOCK))


def _replayed(sessions: Iterator[tuple[BundleTurn, Record]]) -> Measure:
    """Return what gives the sessions that were run, in their order, which is the one that they are asked for in."""

    def measure(arm: Arm) -> Record:
        turn, record = next(sessions)
        if turn.build != arm.value:
            raise ValueError(f"the sessions of {turn.case} were run in another order than they are judged in")
        return record

    return measure
