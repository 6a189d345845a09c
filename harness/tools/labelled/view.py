"""How tables and reports show labelled data."""

from __future__ import annotations

from harness.judge.report.part_view import PartView
from harness.measure.records.record import Record
from harness.tools.labelled.part import Score, TopOne


def _top_one_cells(record: Record) -> dict[str, str]:
    counted = record.part(TopOne)
    return {"top-1": f"{counted.right} of {counted.inputs}"} if counted else {}


def _top_one_facts(record: Record) -> list[tuple[str, str]]:
    if (counted := record.part(TopOne)) is None:
        return []
    text = f"{counted.right} of {counted.inputs} labelled inputs right, {counted.oracle_right} by the oracle"
    if counted.top_five is not None and counted.oracle_top_five is not None:
        text += f"; among the five best {counted.top_five}, {counted.oracle_top_five} by the oracle"
    return [("top-1", text)]


def _score_cells(record: Record) -> dict[str, str]:
    score = record.part(Score)
    return {score.name: f"{score.value:.4g}"} if score else {}


def _score_facts(record: Record) -> list[tuple[str, str]]:
    if (score := record.part(Score)) is None:
        return []
    return [("score", f"{score.name} {score.value:.4g}, {score.oracle:.4g} by the oracle, {score.inputs} inputs")]


TOP_ONE = PartView(facts=_top_one_facts, columns=_top_one_cells)
SCORE = PartView(facts=_score_facts, columns=_score_cells)
