"""Annotations of a check: lines that GitHub Actions reads from a job's output. They need no token.

Source: docs.github.com, GitHub Actions, "Workflow commands": `::error title=TITLE::MESSAGE`, and how it is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator

from harness.base.tables import counted
from harness.judge.report.comparison import CaseComparison, ComparisonExport
from harness.judge.verdict import Verdict

MOST_OF_A_STEP = 10
"""Annotations of a kind that GitHub shows of one step."""
KINDS = {Verdict.WRONG: "error", Verdict.BROKEN: "error", Verdict.SLOWER: "warning", Verdict.FIXED: "notice"}


def annotation_lines(comparison: ComparisonExport) -> Iterator[str]:
    """Yield a line for each case that a reviewer should see, the worst first; a last one counts the others."""
    for kind in dict.fromkeys(KINDS.values()):
        cases = [case for case in comparison.worst_first if KINDS.get(case.verdict) == kind]
        room = MOST_OF_A_STEP if len(cases) <= MOST_OF_A_STEP else MOST_OF_A_STEP - 1
        yield from (_line(kind, _title(case), "; ".join(case.reasons) or case.case) for case in cases[:room])
        if rest := cases[room:]:
            yield _line(kind, f"adreno-bench: {counted(len(rest), 'other')}", ", ".join(case.case for case in rest))


def _title(case: CaseComparison) -> str:
    return f"adreno-bench: {case.case}{' as shipped' * case.as_shipped} is {case.verdict.value}"


def _line(kind: str, title: str, message: str) -> str:
    return f"::{kind} title={_escape(title, ',:')}::{_escape(message)}"


def _escape(text: str, more: str = "") -> str:
    """Replace what would end a value: `%`, line ends, and for a property its separators."""
    for sign in f"%\r\n{more}":
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text
