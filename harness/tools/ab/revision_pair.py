"""Two revisions of the compiler, compared: both are built first, then screened, and suspects are measured in turns.

Where both make the same library of a case, byte for byte, the compiler changed nothing, and nothing is run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from harness.judge.compare import Comparison, ComparisonResult, compare_sides
from harness.judge.confirm import Explain, SessionBudget, settle
from harness.judge.in_turns import Measure
from harness.judge.sides import SeriesKey, sides_of
from harness.judge.stats.pair import Rules
from harness.judge.stats.turns import Arm
from harness.judge.verdict import Verdict
from harness.measure.records.record import Record
from harness.tools.ab.side_by_side import blindness_of
from harness.tools.shared.toolchain import CaseBuild, Toolchain

Keep = Callable[[Arm, Record], None]
OUTCOMES_ALONE = "only outcomes are compared"


@dataclass(frozen=True)
class RevisionPair:
    """Two revisions, ready to be used, and what is told of each record that they make."""

    base: Toolchain
    head: Toolchain
    keep: Keep = lambda *_: None
    latency: bool | None = None
    """Whether latencies are compared; None for those of real GPUs alone: an emulated one's say nothing of a phone."""
    budget: SessionBudget | None = None

    def compare(
        self, cases: Sequence[str], rules: Rules, most_sessions: int, explain: Explain | None = None
    ) -> ComparisonResult:
        """Compare each case, and let `explain` say which kernels made the difference. Raises UsageError, RigFailure."""
        base, head = self.base.build(cases), self.head.build(cases)
        same = self._find_unchanged(base, head)
        rest = [case for case in cases if case not in same]
        emulated = any("gpu" in build.emulated for build in head.values())
        if not rest:
            result = ComparisonResult([])
        elif self.latency or (self.latency is None and not emulated):
            result = self._measure(rest, rules, most_sessions, explain, emulated=emulated)
        else:
            result = self._compare_outcomes(rest, quick=emulated)
        compared = [*same.values(), *result.cases]
        return ComparisonResult(
            sorted(compared, key=lambda comparison: cases.index(comparison.key.case)), result.fitness
        )

    def _find_unchanged(self, base: Mapping[str, CaseBuild], head: Mapping[str, CaseBuild]) -> dict[str, Comparison]:
        """Find the cases for which both make the same library."""
        reason = "both made the same library, byte for byte; nothing was run"
        as_shipped = self.base.options.quirks.as_shipped
        return {
            case: Comparison(SeriesKey(build.identity, case, as_shipped), None, None, Verdict.SAME, (reason,))
            for case, build in head.items()
            if build.library and case in base and base[case].library == build.library
        }

    def _measure(
        self, cases: Sequence[str], rules: Rules, most_sessions: int, explain: Explain | None, *, emulated: bool
    ) -> ComparisonResult:
        records = {arm: self._run(arm, cases) for arm in (Arm.BASE, Arm.HEAD)}

        def measurer(comparison: Comparison) -> Measure:
            def measure(arm: Arm) -> Record:
                records[arm] += self._run(arm, [comparison.key.case])
                return records[arm][-1]

            return measure

        def control() -> str:
            return blindness_of(sides_of(records[Arm.BASE]), sides_of(records[Arm.HEAD]))

        compared = compare_sides(sides_of(records[Arm.BASE]), sides_of(records[Arm.HEAD]), rules, together=True)
        # A phone's own slowdown ends after a while; an emulation's times are no kernel's in any session.
        budget = replace(self.budget or SessionBudget(), control=control) if emulated else self.budget
        return settle(compared, rules, measurer, most_sessions, budget=budget, explain=explain)

    def _compare_outcomes(self, cases: Sequence[str], *, quick: bool) -> ComparisonResult:
        """Run each case once with each of the two, and look at right and wrong alone."""
        base, head = (
            {
                key: structs.replace(side, sessions=(), device_sessions=(), untimed=OUTCOMES_ALONE)
                for key, side in sides_of(self._run(arm, cases, quick=quick)).items()
            }
            for arm in (Arm.BASE, Arm.HEAD)
        )
        return compare_sides(base, head)

    def _run(self, arm: Arm, cases: Sequence[str], *, quick: bool = False) -> list[Record]:
        """Run cases with one of the two, and keep the records."""
        records = (self.base if arm is Arm.BASE else self.head).run(cases, quick=quick)
        for record in records:
            self.keep(arm, record)
        return records
