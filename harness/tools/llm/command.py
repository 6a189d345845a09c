"""`adreno-bench llm`: language models, whether prefill and decode are right, and tokens a second."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.failures import Failure, RigFailure
from device_runner.files import write_whole
from device_runner.selection import select_one
from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.base.outcome import ExitCode, Outcome, exit_code, without_findings
from harness.base.plan import Budget
from harness.base.tables import table
from harness.cli.options import (
    DEFAULT_COMPILER_CONFIG,
    DEFAULT_DEVICE,
    DEFAULT_RECORDS,
    AsJson,
    CompilerConfig,
    DeviceName,
    FindingsAreFine,
    RecordsFile,
    TableExports,
    grouped,
    seldom_option,
    workaround_option,
)
from harness.compile.compiler.releases import find_release, versions
from harness.judge.report.screen import Screen, out, out_json, out_whole
from harness.judge.report.table import json_array

if TYPE_CHECKING:
    from harness.measure.records.record import Record
    from harness.tools.llm.cases import Variant

llm = typer.Typer(help="Run language models: is every logit right, and how many tokens a second?", no_args_is_help=True)

LONGEST_S = 6 * 3600.0
"""Deadline of another release."""


def _list_option(option: str, text: str) -> object:
    return typer.Option(option, help=f"{text}. Repeatable.")


Models = Annotated[list[str] | None, _list_option("--model", "Network: llama_tiny, or a config.json or its folder")]
Formats = Annotated[
    list[str] | None, _list_option("--format", "Weights: float32, float16, q4f16_0, q4f16_1 or q4f32_1")
]
Pipelines = Annotated[list[str] | None, _list_option("--pipeline", "Passes: mlc, or TVM's default")]


@llm.command("run")
@grouped
def run_models(
    exports: TableExports,
    model: Models = None,
    weights: Annotated[str, typer.Option(help="Weights: seed, or a folder of safetensors.")] = "seed",
    form: Formats = None,
    pipeline: Pipelines = None,
    path: Annotated[list[str] | None, _list_option("--path", "Path: opencl, texture or clml")] = None,
    test: Annotated[list[str] | None, _list_option("--test", "Test: pp512, pp512@d512, tg@d512 or chunks")] = None,
    device: DeviceName = DEFAULT_DEVICE,
    records: RecordsFile = DEFAULT_RECORDS,
    quick: Annotated[
        bool, typer.Option("--quick", help="Take three samples of three tests on an emulated device.")
    ] = False,
    as_shipped: Annotated[bool, workaround_option("--as-shipped", help="Work around no defect of TVM.")] = False,
    budget: Annotated[
        float, seldom_option(metavar="SECONDS", min=0.1, max=3600, help="Time for the samples of a test, in seconds.")
    ] = 20,
    release: Annotated[
        list[str] | None, _list_option("--release", "TVM release or commit to build and run with")
    ] = None,
    config: CompilerConfig = DEFAULT_COMPILER_CONFIG,
    findings_are_fine: FindingsAreFine = False,
    as_json: AsJson = False,
) -> None:
    """Build, judge and time language models, and print the table of llama-bench.

    numpy judges every position of a prompt and every step of decode. Only right answers are timed, on the device alone.
    """
    from harness.tools.llm.cases import variants_of

    variants = variants_of(model or ["llama_tiny"], weights, form or (), pipeline or (), path or ())
    results: list[Record] = []
    for name in (find_release(word) or word for word in release or [versions()["tvm"]]):
        if name == versions()["tvm"]:
            results += _run(variants, device, records, Budget(seconds=budget, quick=quick), test, as_shipped=as_shipped)
        else:
            choices = {"--model": model, "--format": form, "--pipeline": pipeline, "--path": path, "--test": test}
            words = [word for option, values in choices.items() for value in values or () for word in (option, value)]
            words += ["--weights", weights, "--device", device, "--budget", str(budget)]
            words += ["--quick"] * quick + ["--as-shipped"] * as_shipped
            results += _run_with(name, words, config, records)
    _finish(results, exports, as_json, findings_are_fine=findings_are_fine)


def _run_with(release: str, words: Sequence[str], config: Path, records: Path) -> list[Record]:
    """Run the same with another release of TVM, in its own environment. Raises InstallFailure, RigFailure."""
    from harness.judge.revisions.sources import revision
    from harness.judge.revisions.toolchain import CommandLine
    from harness.measure.records.record import RecordFile

    file = RecordFile(records.absolute())
    before = records.stat().st_size if records.exists() else 0
    with Screen() as screen:
        line = CommandLine.of(revision(release, config, cache_root()), cache_root(), screen.say)
        code, _, message = line.call(["llm", "run", *words, "--records", str(file.path)], LONGEST_S)
    new = file.load(before).records if file.path.exists() else []
    if not new:
        raise RigFailure(f"{release} ended with code {code}: {message}", hint="run it again")
    return new


def run_instead(
    models: Sequence[str], devices: Sequence[str] | None, records: Path, exports: TableExports, **how: bool
) -> None:
    """Do what `run` was asked for language models, as `llm run` does it, and end; leave other models alone.

    Raises UsageError.
    """
    from harness.tools.llm.cases import is_llm, variants_of

    if not any(map(is_llm, models)):
        return
    if len(devices or ()) > 1 or not all(map(is_llm, models)):
        hint = "give one --device, and no other models"
        raise UsageError("language models run apart from other models, on one device at a time", hint=hint)
    if how["narrowed"]:
        hint = "`adreno-bench llm run --help` shows its own"
        raise UsageError("--path, --precision and --tuning have no effect on language models", hint=hint)
    results = _run(variants_of(models), (devices or [DEFAULT_DEVICE])[0], records, Budget(quick=how["quick"]))
    _finish(results, exports, how["as_json"], findings_are_fine=how["findings_are_fine"])


def _run(
    variants: Sequence[Variant],
    device: str,
    records: Path,
    budget: Budget,
    tests: Sequence[str] | None = None,
    *,
    as_shipped: bool = False,
) -> list[Record]:
    from harness.measure.records.record import RecordFile
    from harness.tools.llm.cases import QUICK_TESTS, TESTS, test_of
    from harness.tools.llm.quirks import WORKED_AROUND
    from harness.tools.llm.run import LlmRequest, run_request

    chosen = [test_of(name) for name in tests or (QUICK_TESTS if budget.quick else TESTS)]
    request = LlmRequest(variants, chosen, cache_root(), () if as_shipped else WORKED_AROUND, budget)
    file = RecordFile(records)
    file.require_writable()
    with Screen() as screen:
        return list(run_request(request, select_one(device, request.cache, screen.say), screen, file))


def _finish(results: Sequence[Record], exports: TableExports, as_json: bool, *, findings_are_fine: bool) -> None:
    """Print the results, write the files that were asked for, and end with the exit code."""
    _write(results, exports, as_json)
    outcomes = [record.outcome for record in results]
    if findings_are_fine:
        outcomes = without_findings(outcomes) or [Outcome.OK]
    raise typer.Exit(exit_code(outcomes))


def _write(results: Sequence[Record], exports: TableExports, as_json: bool) -> None:
    from harness.tools.llm.table import as_csv, as_markdown, as_text

    forms = ((exports.export_json, json_array), (exports.export_csv, as_csv), (exports.export_markdown, as_markdown))
    for file, form in forms:
        if file:
            write_whole(file, form(results) + "\n")
    if as_json:
        out_whole(json_array(results))
    else:
        out(as_text(results))


@llm.command("build")
def build_models(
    model: Models = None,
    form: Formats = None,
    pipeline: Pipelines = None,
    abi: Annotated[
        str, typer.Option(help="Processor: arm64-v8a for phones, aarch64 for boards, or host.")
    ] = "arm64-v8a",
    as_json: AsJson = False,
) -> None:
    """Cross-build language models without a device and without weights, and show the memory that each plans."""
    from harness.tools.llm.cases import variants_of
    from harness.tools.llm.run import build_variants
    from harness.tools.llm.table import BUILD_COLUMNS, build_row

    variants = variants_of(model or ["llama_tiny"], "seed", form or (), pipeline or ())
    with Screen() as screen:
        built = build_variants(variants, abi, cache_root(), screen)
    rows = [build_row(variant, result) for variant, result in zip(variants, built, strict=True)]
    if as_json:
        out_json([dict(zip(BUILD_COLUMNS, row, strict=True)) for row in rows])
    else:
        out(table(rows, BUILD_COLUMNS, right=BUILD_COLUMNS[1:], prose=BUILD_COLUMNS[-1:]))
    if any(isinstance(result, Failure) for result in built):
        raise typer.Exit(ExitCode.WRONG_OR_BROKEN)


@llm.command("show")
@grouped
def show_models(exports: TableExports, records: RecordsFile = DEFAULT_RECORDS, as_json: AsJson = False) -> None:
    """Show the latest record of each test of each language model, by device and release."""
    from harness.measure.records.record import RecordFile
    from harness.tools.llm.part import LlmPart

    results = [record for record in RecordFile(records).load().records if record.part(LlmPart)]
    if not results:
        raise UsageError(f"{records} has no record of a language model", hint="`adreno-bench llm run` makes some")
    _write(list({(r.identity_key, r.tvm, r.case): r for r in results}.values()), exports, as_json)


@llm.command("quirks")
def show_quirks(as_json: AsJson = False) -> None:
    """List the known defects of TVM in language models, and probe the installed TVM for each."""
    from harness.tools.llm.run import probe_quirks

    with Screen() as screen:
        answers = probe_quirks(cache_root(), screen)
    if as_json:
        out_json([{"id": quirk.id, "title": quirk.title, "state": a.state, "seen": a.seen} for quirk, a in answers])
        return
    for quirk, answer in answers:
        out(f"{quirk.id}: {answer.state.value}: {answer.seen}\n  {quirk.title}\n  where: {quirk.upstream}")
        out(f"  instead: {quirk.workaround}\n")
