"""Two revisions of the compiler, compared: both are built first, then screened, and what looks changed is measured in
turns (A B B A), each time in a fresh session, until a sequential test decides.

Where both make the same library of a case, byte for byte, the compiler changed nothing, and nothing is run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.judge.compare import compare_sides
from harness.judge.comparison import Comparison, Result
from harness.judge.confirm import Measure, judge
from harness.judge.sides import SeriesKey, sides_of
from harness.judge.stats.pair import Rules
from harness.judge.stats.sequential import Arm
from harness.judge.verdict import Verdict
from harness.revisions.toolchain import Build, Toolchain
from harness.run.record import Record

Keep = Callable[[Arm, Record], None]


@dataclass(frozen=True)
class Sides:
    """Two revisions, ready to be used, and what is told of each record that they make."""

    base: Toolchain
    head: Toolchain
    keep: Keep = lambda *_: None

    def run(self, side: Arm, cases: Sequence[str]) -> list[Record]:
        """Run cases with one side, and keep the records."""
        records = (self.base if side is Arm.BASE else self.head).run(cases)
        for record in records:
            self.keep(side, record)
        return records

    def compare(self, cases: Sequence[str], rules: Rules, most_sessions: int) -> Result:
        """What became of each case. Raises UsageError, RigFailure."""
        same = _unchanged(self.base.build(cases), self.head.build(cases), self.base.asked.as_shipped)
        rest = [case for case in cases if case not in same]
        found = self._measured(rest, rules, most_sessions) if rest else Result([])
        compared = {**{comparison.key.case: [comparison] for comparison in same.values()}, **_by_case(found)}
        return Result([comparison for case in cases for comparison in compared.get(case, [])], found.fitness)

    def _measured(self, cases: Sequence[str], rules: Rules, most_sessions: int) -> Result:
        base, head = sides_of(self.run(Arm.BASE, cases)), sides_of(self.run(Arm.HEAD, cases))
        return judge(compare_sides(base, head, rules), rules, self._measurer, most_sessions)

    def _measurer(self, comparison: Comparison) -> Measure:
        return lambda side: self.run(side, [comparison.key.case])[0]


def _unchanged(base: dict[str, Build], head: dict[str, Build], as_shipped: bool) -> dict[str, Comparison]:
    reason = "both made the same library, byte for byte; nothing was run"
    return {
        case: Comparison(SeriesKey(build.identity, case, as_shipped), None, None, Verdict.SAME, (reason,))
        for case, build in head.items()
        if build.library and case in base and base[case].library == build.library
    }


def _by_case(result: Result) -> dict[str, list[Comparison]]:
    found: dict[str, list[Comparison]] = {}
    for comparison in result.cases:
        found.setdefault(comparison.key.case, []).append(comparison)
    return found
