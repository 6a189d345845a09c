"""`adreno-bench show --diverge`: the first operator of a network that is off, and what it was compiled to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cases.request import QuirkPolicy
from harness.cli.screen import Screen, out, out_json
from harness.divergence.locate import locate
from harness.divergence.report import Report, compiled_kernels
from harness.divergence.trial import Trials, keep, scratch
from harness.failures import UsageError
from harness.run.outcome import without_findings
from harness.workbench import Request, open_workbench

if TYPE_CHECKING:
    from harness.cases.model import OnnxModel
    from harness.run.record import Record


def show_divergence(
    records: Sequence[Record], suite: Path, models: Sequence[str | OnnxModel], device: str | None, as_json: bool
) -> None:
    """Find and print it for the one case that the records are of. Raises UsageError if there is nothing to find."""
    record = _meant(records)
    report = diverge(record, suite, models, device)
    if as_json:
        out_json(report.plain())
    else:
        out(report.text())


def _meant(records: Sequence[Record]) -> Record:
    """The latest record with a finding. Raises UsageError if there is none, or if they are of several cases."""
    cases = dict.fromkeys(record.case for record in records)
    if len(cases) > 1:
        raise UsageError(f"--diverge looks at one case, and {len(cases)} match", hint=f"name one: {next(iter(cases))}")
    findings = [record for record in records if _is_finding(record)]
    if not findings:
        what = f"{records[-1].case} is {records[-1].outcome.value}: there is nothing to find in its network"
        raise UsageError(what, hint="name a case that is wrong or broken")
    return max(findings, key=lambda record: record.started_at)


def _is_finding(record: Record) -> bool:
    return not without_findings([record.outcome])


def diverge(record: Record, suite: Path, models: Sequence[str | OnnxModel], device: str | None) -> Report:
    """Run the record's case again, with the same defects worked around, and find where it goes off.

    Its model is looked for among `models`, if there are any, as `run --model` had them.

    Raises UsageError if it is neither wrong nor broken now.
    """
    quirks = QuirkPolicy(as_shipped=True, with_quirks=tuple(record.quirks))
    request = Request.read(suite, [record.case], quirks, models=models)
    with (
        Screen() as screen,
        open_workbench(request, request.one_device(device or record.device, screen), screen, timed=False) as bench,
        scratch(request.cache) as folder,
    ):
        trials = Trials.of(bench, folder, screen)
        whole, network = trials.whole(), trials.network
        if not _is_finding(whole):
            what = f"{record.case} is {whole.outcome.value} now: there is nothing to find in its network"
            raise UsageError(what, hint="`adreno-bench run` it again")

        found = locate(network, whole.outcome, trials.run, screen.say)
        smallest, same = found.smallest, record.artifact == whole.artifact
        if smallest is None:
            return Report(whole, same, network, found, None, ())
        kernels = compiled_kernels(smallest.record, whole, request.cache)
        return Report(whole, same, network, found, keep(smallest, request.cache), kernels)
