"""What the tests of one pytest process share: the device, opened once, and everything built before the first test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.build.pool import Builder
from harness.cases.plan import Plan
from harness.cases.suite import Suite
from harness.judge.baseline import Baseline
from harness.pytest_plugin.options import Options
from harness.run.progress import Silent
from harness.run.record import Record
from harness.run.runner import Built, Run, run_with_recovery
from harness.run.tuning import TuningStore
from harness.workbench import prepared


@dataclass(frozen=True)
class CaseRunner:
    """A device held by us, and what was built for it."""

    options: Options
    suite: Suite
    run: Run
    plans: Mapping[str, Plan]
    """By case id."""
    built: Built

    def record(self, case: str) -> Record:
        """Run a case and judge it; it is not timed."""
        return run_with_recovery(self.plans[case], self.built, self.run, Silent())

    def baseline(self, case: str) -> Baseline | None:
        """What was blessed of a case on this identity. Raises UsageError for a file that is not good."""
        return Baseline.find(self.options.baselines, self.run.device.identity.key, case)


@contextlib.contextmanager
def opened(options: Options, device: str, cases: Sequence[str]) -> Iterator[CaseRunner]:
    """Open the device and build the cases. Raises Failure if the rig cannot; a build that fails is its case's."""
    as_shipped, but_for = options.as_shipped, options.with_quirks
    with (
        prepared(options.suite, list(cases), device, as_shipped=as_shipped, but_for=but_for, say=_silent) as work,
        Builder(work.cache, work.suite.limits) as builder,
    ):
        built = builder.build(job for plan in work.plans for job in (plan.compile, plan.oracle))
        run = Run(work.device, TuningStore(work.cache), as_shipped, timed=False)
        yield CaseRunner(options, work.suite, run, {plan.case.id: plan for plan in work.plans}, built)


def _silent(_said: str) -> None:
    """A test says what it has to say in its failure."""
