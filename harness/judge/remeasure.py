"""Measure a suspect again: this build and the baseline's, each in a session of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.build.pool import Builder, stored
from harness.cases.plan import Plan
from harness.judge.baseline import Baseline
from harness.judge.comparison import Comparison
from harness.judge.in_turns import Measure
from harness.judge.stats.turns import Arm
from harness.run.context import Run
from harness.run.progress import Progress
from harness.run.record import Record, RecordFile, Releases
from harness.run.runner import run_with_recovery


@dataclass(frozen=True)
class Remeasure:
    """All that is needed to run a case of this gate again, as it is and as it was blessed."""

    plans: Sequence[Plan]
    baselines: Sequence[Baseline]
    run: Run
    builder: Builder
    cache: Path
    records: RecordFile
    progress: Progress

    def measurer(self, comparison: Comparison) -> Measure | str:
        """What runs one arm of a case and keeps the record; or why the baseline's arm cannot be run."""
        plan = next(plan for plan in self.plans if plan.case.id == comparison.key.case)
        base = comparison.base.key if comparison.base else comparison.key
        blessed = next(one for one in self.baselines if one.side.key == base)
        old = stored(self.cache, blessed.artifact)
        if old is None:
            return (
                f"the baseline's build {blessed.artifact} is not in this store, so the two cannot be measured in turns"
            )
        built = {**self.builder.build(plan.jobs), old.key: old}
        was = replace(plan, compile=replace(plan.compile, key=old.key), quirks=blessed.quirks)

        def measure(arm: Arm) -> Record:
            record = run_with_recovery(plan if arm is Arm.HEAD else was, built, self.run, self.progress)
            if arm is Arm.BASE:
                record = record.model_copy(update={"compiled_with": Releases(tvm=blessed.tvm, ffi=blessed.ffi)})
            self.records.append(record)
            self.progress.done(record)
            return record

        return measure
