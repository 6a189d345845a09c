"""One case in detail: `adreno-bench show --kernels` and `--diverge`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.base.model import OnnxModel
from harness.base.outcome import Outcome, without_findings
from harness.base.request import QuirkPolicy
from harness.base.terminal import tell
from harness.cli.hints import runnable
from harness.compile.artifacts.artifact import kernel_files
from harness.compile.models.zoo import ZOO
from harness.judge.report.screen import Screen, out, out_json
from harness.measure.records.record import Record
from harness.measure.workbench import Request, open_workbench
from harness.tools.explain.divergence_report import DivergenceReport, compiled_kernels
from harness.tools.explain.first_wrong import append_first_wrong
from harness.tools.explain.locate import locate
from harness.tools.explain.trial import Trials, keep, scratch

MOST_LINES = 20
"""Most lines of a build log; what follows the first error is mostly its consequence."""


def show_kernels(records: Sequence[Record], as_json: bool) -> None:
    """Print it for each record."""
    if as_json:
        out_json([_plain(record) for record in records])
    else:
        out("\n\n".join(map(kernels_text, records)))


def _plain(record: Record) -> dict[str, object]:
    log = record.evidence if record.outcome is Outcome.KERNEL_BUILD_ERROR else ""
    files = kernel_files(cache_root(), record.artifact)
    return {
        "case": record.case,
        "outcome": record.outcome.value,
        "message": record.message,
        "build_log": log,
        "kernels": None if files is None else list(map(str, files)),
    }


def kernels_text(record: Record) -> str:
    """Return a few lines: the outcome, the beginning of the build log if the device refused a kernel, and the files."""
    lines = [f"{record.case}: {record.outcome.value}"]
    if record.outcome is Outcome.KERNEL_BUILD_ERROR:
        log = record.evidence.splitlines()
        more = len(log) - MOST_LINES
        lines += [
            record.message,
            *log[:MOST_LINES],
            *([f"... and {more} more lines in the record"] if more > 0 else []),
        ]
    return "\n  ".join([*lines, *_files(record)])


def _files(record: Record) -> list[str]:
    files = kernel_files(cache_root(), record.artifact)
    if files is None:
        return ["its kernels are not in the cache; `adreno-bench build` makes them again, if the case compiles"]
    return [f"its kernels, one file each, are in {files[0].parent}", *(file.name for file in files)] if files else []


def show_divergence(
    records: Sequence[Record],
    place: Path | str,
    suite: Path,
    models: Sequence[str | OnnxModel],
    device: str | None,
    as_json: bool,
) -> None:
    """Find and print it for the one case that the records are of, and keep it beside them for `report`.

    Raises UsageError if there is nothing to find.
    """
    record = _meant(records)
    report = diverge(record, suite, models, device)
    try:
        if (file := Path(place)).exists():
            append_first_wrong(file, report.first_wrong())
    except OSError as error:
        tell(f"`adreno-bench report` cannot show this: {error}")
    if as_json:
        out_json(report.plain())
    else:
        out(runnable(report.text(), place))


def _meant(records: Sequence[Record]) -> Record:
    """Return the latest record with a finding. Raises UsageError if there is none, or if they are of several cases."""
    cases = dict.fromkeys(record.case for record in records)
    if len(cases) > 1:
        raise UsageError(f"--diverge looks at one case, and {len(cases)} match", hint=f"name one: {next(iter(cases))}")
    findings = [record for record in records if _is_finding(record)]
    if not findings:
        what = f"{records[-1].case} is {records[-1].outcome.value}: there is no wrong operator to find"
        raise UsageError(what, hint="name a case that is wrong or broken")
    return max(findings, key=lambda record: record.started_at)


def _is_finding(record: Record) -> bool:
    return not without_findings([record.outcome])


def diverge(record: Record, suite: Path, models: Sequence[str | OnnxModel], device: str | None) -> DivergenceReport:
    """Run the record's case again, with the same defects worked around, and find where it goes off.

    Its model is looked for among `models`, if there are any, as `run --model` had them.

    Raises UsageError if it is neither wrong nor broken now.
    """
    quirks = QuirkPolicy(as_shipped=True, with_quirks=tuple(record.quirks))
    if not models and not suite.exists() and record.model in {model.name for model in ZOO}:
        models = [record.model]  # as `run --model` had it
    request = Request.read(suite, [record.case], quirks, models=models)
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

        found = locate(network, whole.finding, trials.run, screen.say)
        smallest, same = found.smallest, record.artifact == whole.artifact
        if smallest is None:
            return DivergenceReport(whole, same, network, found, None, ())
        kernels = compiled_kernels(smallest.record, whole, request.cache)
        return DivergenceReport(whole, same, network, found, keep(smallest, request.cache), kernels)
