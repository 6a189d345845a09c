"""What the tests of one pytest process share: the device, opened once, and everything built before the first test."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.build.artifact import Built
from harness.cases.plan import Plan
from harness.cases.suite import Suite
from harness.judge.baseline import Baseline
from harness.pytest_plugin.options import Options
from harness.quirks import policy_of
from harness.run.context import Run
from harness.run.progress import Silent
from harness.run.record import Record
from harness.run.runner import run_with_recovery
from harness.workbench import Request, open_workbench


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
    request = Request.read(options.suite, list(cases), policy_of(options.as_shipped, options.with_quirks))
    with open_workbench(request, request.one_device(device, Silent()), Silent(), timed=False) as bench:
        built = bench.builder.build(job for plan in bench.plans for job in (plan.compile, plan.oracle))
        plans = {plan.case.id: plan for plan in bench.plans}
        yield CaseRunner(options, request.suite, bench.run, plans, built)
