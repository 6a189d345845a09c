"""Runs a case again and finds where its network goes off."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.base.failures import UsageError
from harness.base.model import OnnxModel
from harness.base.outcome import without_findings
from harness.base.request import QuirkPolicy
from harness.compile.models.named import named_models
from harness.judge.report.screen import Screen
from harness.measure.records.record import Record
from harness.measure.workbench import Request, open_workbench
from harness.tools.explain.divergence_report import DivergenceReport, compiled_kernels
from harness.tools.explain.locate import locate
from harness.tools.explain.trial import Trials, keep, scratch
from harness.tools.shared.networks import without_programs


def newest_finding(records: Sequence[Record]) -> Record:
    """Return the latest record with a finding. Raises UsageError if there is none, or if they are of several cases."""
    cases = dict.fromkeys(record.case for record in records)
    if len(cases) > 1:
        raise UsageError(f"diverge takes one case, and {len(cases)} match", hint=f"name one: {next(iter(cases))}")
    findings = [record for record in records if _is_finding(record)]
    if not findings:
        what = f"{records[-1].case} is {records[-1].outcome.value}: there is no wrong operator to find"
        raise UsageError(what, hint="name a case that is wrong or broken")
    return max(findings, key=lambda record: record.started_at)


def _is_finding(record: Record) -> bool:
    return not without_findings([record.outcome])


def find_divergence(
    record: Record, suite: Path, models: Sequence[str | OnnxModel], device: str | None
) -> DivergenceReport:
    """Run the record's case again, with the same defects worked around, and find where it goes off.

    Its model is looked for among `models`, if there are any, as `run --model` had them.

    Raises UsageError if it is neither wrong nor broken now.
    """
    quirks = QuirkPolicy(as_shipped=True, with_quirks=tuple(record.quirks))
    if not models and not suite.exists() and record.model in named_models():
        models = [record.model]  # as `run --model` had it
    request = without_programs(Request.read(suite, [record.case], quirks, models=models))
    with (
        Screen() as screen,
        open_workbench(request, request.one_device(device or record.device, screen), screen, timed=False) as bench,
        scratch(request.cache) as folder,
    ):
        trials = Trials.of(bench, folder, screen)
        whole, network = trials.whole(), trials.network
        if not _is_finding(whole):
            what = f"{record.case} is {whole.outcome.value} now: there is no wrong operator to find"
            raise UsageError(what, hint="`adreno-bench run` it again")

        divergence = locate(network, whole.finding, trials.run, screen.say)
        smallest, same = divergence.smallest, record.artifact == whole.artifact
        if smallest is None:
            return DivergenceReport(whole, same, network, divergence, None, ())
        kernels = compiled_kernels(smallest.record, whole, request.cache)
        return DivergenceReport(whole, same, network, divergence, keep(smallest, request.cache), kernels)
