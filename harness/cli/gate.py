"""`adreno-bench gate`: is it as good as its baselines?"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.base.failures import UsageError
from harness.base.tables import listed
from harness.base.terminal import tell
from harness.cli import options
from harness.cli.hints import last_words
from harness.cli.record_filter import device_of_records, models_of_runs, read_sides, sustained_records
from harness.cli.rule_options import ConfirmOptions, Minutes
from harness.judge.report import verdicts
from harness.judge.report.screen import Screen, out_json, out_parts
from harness.judge.verdict import Verdict

if TYPE_CHECKING:
    from harness.base.model import OnnxModel
    from harness.judge.compare import ComparisonResult
    from harness.judge.gate import Gate
    from harness.measure.workbench import Request

MOST_NAMES = 100
"""Maximum number of names in a remark; --json has all."""


@options.grouped
@last_words("no verdict; finished records and builds are kept; {command} measures again")
def gate(
    context: typer.Context,
    what: options.CaseOptions,
    confirming: ConfirmOptions,
    exports: options.TableExports,
    minutes: Minutes = 20,
    device: options.DeviceOfRecords = None,
    records: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Records file (JSON lines) to append to.", show_default=str(options.DEFAULT_RECORDS)
        ),
    ] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="PLACE", help="Judge these records and run nothing.")
    ] = None,
    baselines: options.BaselinesFolder = options.DEFAULT_BASELINES,
    builders: options.Builders = None,
    as_json: options.AsJson = False,
) -> None:
    """Run the suite and compare it with its baselines: exit 3 if a case is wrong or broken, 1 if it is slower.

    Measures each changed build in turns with that of the baseline, in fresh sessions, until it is decided or the time
    is up, and shows the kernels of slower and faster cases. Exit code 6: a case looks slower and is undecided. Compares
    only baselines of the same identity, and names cases without one.
    """
    from harness.judge.compare import exit_code
    from harness.judge.confirm import decisions_of
    from harness.judge.decisions import keep
    from harness.judge.gate import Gate
    from harness.judge.report.comparison import export_comparison, write_comparison
    from harness.judge.sides import SeriesKey
    from harness.measure.records.view import without_garbage_collection

    if baselines != options.DEFAULT_BASELINES and not baselines.is_dir():
        raise UsageError(f"there is no folder {baselines}", hint="correct --baselines, or make it with `bless`")
    models: list[str | OnnxModel] = []
    if source:
        context.with_resource(without_garbage_collection())
    elif not (what.model or what.suite.exists()):
        what, models = _of_runs(what, records or options.DEFAULT_RECORDS)
    held_to = Gate.read(
        baselines.absolute(),
        None if source else records or options.DEFAULT_RECORDS,
        what.covers,
        confirming.rules,
        confirming.most_sessions,
        as_shipped=what.as_shipped,
    )
    if source:
        unused = ("suite", *options.MODEL_OPTIONS, "schedules", "with_quirks", "minutes", "records", "builders")
        options.refuse_options(context, unused, "with --from, which runs nothing")
        sides = read_sides(source, what.covers, device)
        sustained = [SeriesKey.of(record) for record in sustained_records(source, what.covers)]
        result = held_to.compare(sides, lambda _: "a gate without --from measures again", sustained=sustained)
    else:
        named = {"models": models} if models else {}
        result = _run(what.request(builders=builders, **named), held_to, minutes, device, records)
        keep(decisions_of(result.cases, "gate"))
    export = export_comparison(result) if as_json or exports.given else None
    if export:
        write_comparison(export, **vars(exports))
    if export and as_json:
        out_json(export.plain())
    else:
        tables = verdicts.verdict_table(result.cases), *verdicts.kernel_tables(result.cases)
        out_parts(
            *tables,
            verdicts.unfit(result.fitness),
            _remark(result),
            verdicts.needed(result),
            verdicts.undecided(result),
        )
    raise typer.Exit(exit_code(result))


def _of_runs(what: options.CaseOptions, records: Path) -> tuple[options.CaseOptions, list[str | OnnxModel]]:
    """Return the cases and models that runs without a suite file measured; nothing new if there are none."""
    cases, models = models_of_runs(records, what.covers)
    if models:
        named = ", ".join(model if isinstance(model, str) else str(model.onnx) for model in models)
        tell(f"there is no {what.suite}: gating what `run --model` wrote to {records}: {named}")
    return replace(what, case=cases) if models else what, models


def _run(request: Request, held_to: Gate, minutes: float, device: str | None, records: Path | None) -> ComparisonResult:
    from harness.judge.confirm import SessionBudget, explainer
    from harness.judge.gate import Remeasure
    from harness.judge.sides import sides_of
    from harness.measure.records.record import RecordFile
    from harness.measure.runner import run_suite
    from harness.measure.workbench import open_workbench

    file = RecordFile(records or options.DEFAULT_RECORDS)
    file.require_writable()
    with Screen() as screen:
        name = device_of_records(request, device, file.path, screen, is_named=records is not None)
        with open_workbench(request, name, screen) as bench:
            plans = held_to.pinned(bench.plans, bench.device.identity.key)
            done = list(run_suite(plans, bench.run, bench.builder, file, screen))
            again = Remeasure(plans, held_to.baselines, bench.run, bench.builder, request.cache, file, screen)
            budget, explain = SessionBudget(minutes, say=screen.say), explainer("gate", again)
            return held_to.compare(sides_of(done), again.measurer, budget, explain=explain)


def _remark(result: ComparisonResult) -> str:
    """Return what was not compared, and why."""
    from harness.judge.gate import OTHER_IDENTITY
    from harness.judge.sides import of_one_model

    new = [str(comparison.key) for comparison in result.cases if comparison.verdict is Verdict.NEW]
    lent = {str(c.key): c.base.key.identity for c in result.cases if c.base and c.base.key.identity != c.key.identity}
    here = {comparison.key.identity for comparison in result.cases} | set(lent.values())
    others = sorted({pair.key.identity for pair in result.left_out if pair.reason == OTHER_IDENTITY})
    by_reason: dict[str, list[str]] = defaultdict(list)
    for pair in result.left_out:
        by_reason[pair.reason].append(str(pair.key))
    lines = [f"no baseline: {listed(new, MOST_NAMES)} (`adreno-bench bless` makes one)"] if new else []
    lines += [f"compared with {other}, which calibration found equal: {case}" for case, other in lent.items()]
    lines += [
        f"not compared: {listed(of, MOST_NAMES)}: {why}" for why, of in by_reason.items() if why != OTHER_IDENTITY
    ]
    lines += [f"baselines of another identity are never compared: {', '.join(others)}"] if others else []
    lines += [handsets] if (handsets := of_one_model(here, others)) else []
    emulated = dict.fromkeys(part for c in result.cases if c.base and c.base.sessions for part in c.base.emulated)
    lines += [f"not the real thing: {', '.join(emulated)}; these times say nothing about a phone"] if emulated else []
    return "\n".join(lines if result.cases else ["nothing was compared", *lines])
