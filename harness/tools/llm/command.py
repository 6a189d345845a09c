"""`adreno-bench llm`: language models, whether prefill and decode are right, and tokens a second."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.failures import Failure, RigFailure
from device_runner.files import write_whole
from device_runner.store import cache_root
from harness.base.failures import UsageError, reason_alone
from harness.base.outcome import ExitCode, Outcome, exit_code, without_findings
from harness.base.request import QuirkPolicy
from harness.base.tables import table
from harness.cli.hints import last_words
from harness.cli.options import (
    DEFAULT_DEVICE,
    DEFAULT_RECORDS,
    AsJson,
    DeviceName,
    FindingsAreFine,
    RecordsFile,
    TableExports,
    grouped,
    seldom_option,
    workaround_option,
)
from harness.compile.compiler.releases import find_release, require_working_pair, versions
from harness.judge.report.screen import Screen, out, out_json, out_whole
from harness.judge.report.table import json_array
from harness.tools.shared.revision_options import DEFAULT_COMPILER_CONFIG, CompilerConfig

if TYPE_CHECKING:
    from harness.base.model import ProgramModel
    from harness.base.suite import Suite
    from harness.measure.records.record import Record

llm = typer.Typer(help="Run language models: is every logit right, and how many tokens a second?", no_args_is_help=True)

LIMITS = {"build_s": 3600, "build_memory_gb": 64}
"""numpy computes the truth of a billion weights in minutes."""
LONGEST_S = 6 * 3600.0
"""Deadline of another release."""


def _list_option(option: str, text: str) -> object:
    return typer.Option(option, help=f"{text}. Repeatable.")


Models = Annotated[list[str] | None, _list_option("--model", "Network: llama_tiny, or a config.json or its folder")]
Formats = Annotated[
    list[str] | None, _list_option("--format", "Weights: float32, float16, q4f16_0, q4f16_1 or q4f32_1")
]
Pipelines = Annotated[
    list[str] | None, _list_option("--pipeline", "Passes: mlc (those of mlc-llm) or default (TVM's own)")
]


@llm.command("run")
@grouped
@last_words("finished records and builds are kept; {command} measures again")
def run_models(
    exports: TableExports,
    model: Models = None,
    library: Annotated[
        list[str] | None, _list_option("--library", "Library that mlc-llm compiled, with --weights FOLDER")
    ] = None,
    weights: Annotated[
        str, typer.Option(help="Weights: seed, a folder of safetensors, or what mlc-llm converted.")
    ] = "seed",
    form: Formats = None,
    pipeline: Pipelines = None,
    path: Annotated[list[str] | None, _list_option("--path", "Path: opencl, texture or clml")] = None,
    test: Annotated[list[str] | None, _list_option("--test", "Test: pp512, pp512@d512, tg@d512 or chunks")] = None,
    chunk: Annotated[
        int | None, typer.Option(min=1, max=512, help="Maximum number of tokens per step. Default: by a trial.")
    ] = None,
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
    from pydantic import ValidationError

    from harness.base.suite import Suite
    from harness.tools.llm.cases import QUICK_TESTS, TESTS, LlmTask, MlcTask
    from harness.tools.llm.weights import SEED

    if library and weights == SEED:
        raise UsageError("--library needs the folder of its weights", hint="--weights FOLDER")
    shared = {"weights": weights, "tests": test or [*(QUICK_TESTS if quick else TESTS)], "chunk": chunk}
    choices = {key: names for key, names in (("format", form), ("pipeline", pipeline)) if names}
    programs: list[ProgramModel] = []
    for name in model or ([] if library else ["llama_tiny"]):
        word = shlex.join(["--model", name, "--weights", weights])
        programs += LlmTask.read_table({"llm": name, **shared, **choices}, Path(), word)
    for name in library or ():
        word = shlex.join(["--library", name, "--weights", weights])
        programs += MlcTask.read_table({"mlc": name, **shared}, Path(), word)
    try:
        suite = Suite(models=programs, paths=path or ["opencl"], budget_s=budget, limits=LIMITS)
    except ValidationError as error:
        raise UsageError(reason_alone(error)) from None
    results: list[Record] = []
    for name in (find_release(word) or word for word in release or [versions()["tvm"]]):
        if name == versions()["tvm"]:
            results += _run(suite, device, records, QuirkPolicy(as_shipped), quick=quick)
        else:
            lists = {"model": model, "library": library, "format": form, "pipeline": pipeline}
            lists |= {"path": path, "test": test}
            words = [f"--{option}={value}" for option, values in lists.items() for value in values or ()]
            words += [f"--weights={weights}", f"--device={device}", f"--budget={budget}"]
            words += [f"--chunk={chunk}"] * bool(chunk) + ["--quick"] * quick + ["--as-shipped"] * as_shipped
            results += _run_with(name, words, config, records)
    _write(results, exports, as_json)
    outcomes = [record.outcome for record in results]
    if findings_are_fine:
        outcomes = without_findings(outcomes) or [Outcome.OK]
    raise typer.Exit(exit_code(outcomes))


def _run(suite: Suite, device: str, records: Path, policy: QuirkPolicy, *, quick: bool) -> list[Record]:
    from harness.compile.artifacts.planner import check
    from harness.measure.records.record import RecordFile
    from harness.measure.workbench import Request, run_request

    require_working_pair(versions())
    file, request = RecordFile(records), Request(suite, suite.cases, cache_root(), policy, quick)
    check(suite, suite.cases, request.cache)
    file.require_writable()
    with Screen() as screen:
        results = run_request(request, [request.one_device(device, screen)], file, screen)
    for failure in results.lost.values():
        raise failure
    return list(results.records)


def _run_with(release: str, words: Sequence[str], config: Path, records: Path) -> list[Record]:
    """Run the same with another release of TVM, in its own environment. Raises InstallFailure, RigFailure."""
    from harness.measure.records.record import RecordFile
    from harness.tools.shared.revisions import revision
    from harness.tools.shared.toolchain import CommandLine

    file = RecordFile(records.absolute())
    before = records.stat().st_size if records.exists() else 0
    with Screen() as screen:
        line = CommandLine.of(revision(release, config, cache_root()), cache_root(), screen.say)
        code, _, message = line.call(["llm", "run", *words, "--records", str(file.path)], LONGEST_S)
    new = file.load(before).records if file.path.exists() else []
    if not new:
        raise RigFailure(f"{release} ended with code {code}: {message}", hint="run it again")
    return new


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
    from harness.tools.llm.cases import tasks_of
    from harness.tools.llm.run import build_libraries
    from harness.tools.llm.table import BUILD_COLUMNS, build_row

    tasks = tasks_of(model or ["llama_tiny"], format=form, pipeline=pipeline, tests=["pp32"])
    with Screen() as screen:
        built = build_libraries(tasks, abi, cache_root(), screen)
    rows = [build_row(task, result) for task, result in zip(tasks, built, strict=True)]
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
