"""HTML for a notebook: the matrix of a report's page, and the verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from device_runner.failures import SetupMissing
from harness.judge.report import words
from harness.judge.report.comparison import ComparisonExport
from harness.judge.report.matrix import entries_of, matrices_of
from harness.judge.report.page import environment
from harness.judge.report.suite_page import conclusions_of
from harness.measure.records.record import Record

HEADERS = ("case", "verdict", "base", "head", "change")


def matrix_html(builds: Iterable[Sequence[Record]]) -> str | None:
    """Return the matrix of each device; None without jinja2."""
    try:
        macros: Any = environment().get_template("matrix.html.j2").module
    except SetupMissing:
        return None
    return str(macros.notebook(matrices_of(entries_of(builds)), conclusions_of))


def verdicts_html(comparison: ComparisonExport, answer: str) -> str:
    """Return the answer, and a row for each case, the worst first."""
    from tabulate import tabulate

    rows = [
        (
            case.case,
            case.verdict.value,
            *("-" if side is None else words.latency(side.latency_ms) for side in (case.base, case.head)),
            words.percent(case.relative),
        )
        for case in comparison.worst_first
    ]
    return f"<p>{escape(answer)}</p>" + tabulate(rows, HEADERS, tablefmt="html", disable_numparse=True)
