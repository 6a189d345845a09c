"""`adreno-bench compare`: two models, two sets of options, two sets of records, or two revisions, side by side."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from device_runner.selection import select_one
from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.cli import options
from harness.cli.commands import usage_line
from harness.cli.hints import last_words
from harness.cli.record_filter import load_sides
from harness.cli.rule_options import ConfirmOptions, Minutes
from harness.judge.decisions import keep
from harness.judge.report.screen import Screen, out, out_json, out_whole
from harness.tools.shared.revision_options import DEFAULT_COMPILER_CONFIG, CompilerConfig, case_ids, on_each_revision
from harness.tools.shared.revisions import revision

if TYPE_CHECKING:
    from harness.judge.stats.turns import Arm
    from harness.measure.records.record import Record
    from harness.tools.shared.comparison_view import ComparisonView


@options.grouped
@last_words("no verdict; what was built or installed is kept; {command} measures again")
def compare(
    context: typer.Context,
    what: options.CaseOptions,
    confirming: ConfirmOptions,
    exports: options.TableExports,
    base: Annotated[
        str | None,
        typer.Argument(
            metavar="BASE", help="Base: a model's file, records, a folder of baselines, a TVM release, or a commit."
        ),
    ] = None,
    head: Annotated[
        str | None, typer.Argument(metavar="HEAD", help="Head: the same choices, for the side to judge.")
    ] = None,
    a: Annotated[
        str | None, typer.Option("--a", metavar="OPTIONS", help="Options of base alone: --a '--precision float32'.")
    ] = None,
    b: Annotated[
        str | None, typer.Option("--b", metavar="OPTIONS", help="Options of head alone: --b '--precision float16'.")
    ] = None,
    latency: Annotated[
        bool | None,
        typer.Option(
            "--latency/--correctness",
            help="Compare latencies, or outcomes alone. Default: outcomes alone if the GPU is emulated.",
            show_default=False,
        ),
    ] = None,
    minutes: Minutes = 20,
    states: Annotated[
        bool,
        options.seldom_option(
            "--states", help="Compare two states of a device, with the same artifacts on both sides."
        ),
    ] = False,
    device: options.DeviceName = options.DEFAULT_DEVICE,
    config: CompilerConfig = DEFAULT_COMPILER_CONFIG,
    records: Annotated[
        Path | None,
        options.seldom_option(
            metavar="FOLDER", help="Folder for the records of both sides: base.jsonl and head.jsonl."
        ),
    ] = None,
    page: Annotated[
        Path | None,
        options.file_option("--plot", metavar="FILE", help="For models and options: also write an HTML page."),
    ] = None,
    as_json: options.AsJson = False,
    markdown: Annotated[bool, options.output_option("--markdown", help="Print Markdown for a pull request.")] = False,
) -> None:
    """Compare two models, sets of options, releases, commits or records files.

    The verdict on each case is wrong, broken, slower, faster, fixed, same or inconclusive.

    Builds two models, or one with two sets of options, and measures them in turns on one device; the last line has the
    answer. Installs releases and commits, builds and runs the suite with both, measures in turns what looks slower or
    faster, and shows its kernels. Compares records and baselines as they are, on the same identity. On an emulated GPU
    it compares only the outcomes of releases and commits, unless you pass --latency. If artifacts that are the same on
    both sides look changed, the run is unfit and no latency counts. Exit code 6: a case looks slower and is undecided.
    """
    from harness.judge.compare import exit_code
    from harness.judge.report.comparison import write_comparison
    from harness.measure.records.view import without_garbage_collection
    from harness.tools.shared.comparison_view import view_sides

    if as_json and markdown:
        raise UsageError("--json and --markdown exclude each other", hint="choose one")
    folder = _Folder(records)
    if a is not None or b is not None or _is_model(base) or _is_model(head):
        options.refuse_options(context, ("latency", "config", "states"), "on two models or two sets of options")
        sides = [
            _side(name, base if name == "--a" else head or base, text, what) for name, text in (("--a", a), ("--b", b))
        ]
        if sides[0] == sides[1]:
            hint = "name two models, or options of one side: --b '--precision float16'"
            raise UsageError("both sides are the same", hint=hint)
        verdicts = _side_by_side(sides, confirming, device, folder, minutes, page)
    elif base is None or head is None:
        raise UsageError("compare takes two sides", hint="name two models, two places of records, or two releases")
    elif _are_places(base, head):
        unused = ("latency", "minutes", "page", *options.MODEL_OPTIONS)
        options.refuse_options(context, unused, "with files: what was measured before is not measured in turns")
        context.with_resource(without_garbage_collection())
        before, now = (load_sides(word, what.covers) for word in (base, head))
        verdicts = view_sides(before, now, confirming.rules, gauged=not states)
    else:
        options.refuse_options(context, ("states", "page"), "on releases and commits")
        verdicts = _of_revisions((base, head), what, confirming, device, config, folder, latency, minutes)
    write_comparison(verdicts.export, **vars(exports))
    if as_json:
        out_json(verdicts.export.plain())
    else:
        (out_whole if markdown else out)(verdicts.text(markdown=markdown))
    raise typer.Exit(exit_code(verdicts.result))


class _Folder:
    """The folder in which the records of both sides are kept, if one was named."""

    def __init__(self, folder: Path | None) -> None:
        from harness.judge.stats.turns import Arm
        from harness.measure.records.record import RecordFile

        self.files = {arm: RecordFile(folder / f"{arm.value}.jsonl") for arm in Arm} if folder else {}
        self.remark = f"; the records are in {folder}" if folder else ""
        for file in self.files.values():
            file.require_writable()

    def keep(self, arm: Arm, record: Record) -> None:
        """Append a record of one side."""
        if arm in self.files:
            self.files[arm].append(record)


def _is_model(word: str | None) -> bool:
    from harness.base.model import SUFFIXES

    return word is not None and word.endswith(SUFFIXES)


def _are_places(base: str, head: str) -> bool:
    """Return whether both words name records or baselines. Raises UsageError if only one does."""
    from harness.measure.records.places import is_place

    there = [is_place(word) for word in (base, head)]
    if any(there) and not all(there):
        file, other = (base, head) if there[0] else (head, base)
        raise UsageError(
            f"there is no file {other}, but {file} is one: what was measured before cannot be measured in turns",
            hint="name two files, or two revisions",
        )
    return all(there)


def _side(option: str, model: str | None, text: str | None, what: options.CaseOptions) -> options.CaseOptions:
    """Return the options of one side: its own, and for the others those of both. Raises UsageError."""
    program = typer.Typer(add_completion=False)
    program.command()(options.grouped(_take_options))
    try:
        context = get_command(program).make_context(option, shlex.split(text or ""))
    except (TyperException, typer.Exit, ValueError) as error:  # `--help`, and a quotation without its end
        problem = usage_line(error) if isinstance(error, TyperException) else str(error) or "options of a case alone"
        raise UsageError(f"{option} {text!r}: {problem}", hint=f"for example {option} '--precision float16'") from None
    own = {name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")}
    side = replace(what, **{name: context.params[name] for name in own})
    if model and not _is_model(model):
        raise UsageError(f"{model} is not a model's file", hint="name an .onnx or .pt2 file")
    if model and side.model:
        raise UsageError(f"{model} and --model name two models for one side", hint="leave one of them out")
    return replace(side, model=[model]) if model else side


def _take_options(what: options.CaseOptions) -> None:
    """Take the options of one side."""


def _side_by_side(
    sides: Sequence[options.CaseOptions],
    confirming: ConfirmOptions,
    device: str,
    folder: _Folder,
    minutes: float,
    page: Path | None,
) -> ComparisonView:
    from harness.judge.report.page import environment
    from harness.tools.ab.side_by_side import measure_side_by_side
    from harness.tools.shared.outputs import require_page

    if page:
        require_page(page)
        environment()  # which says what to install
    base, head = (side.request() for side in sides)
    rules, most = confirming.rules, confirming.most_sessions
    with Screen() as screen:
        name = select_one(device, cache_root(), screen.say)
        return measure_side_by_side(
            base, head, name, rules, screen, minutes=minutes, most_sessions=most, keep=folder.keep, page=page
        )


def _of_revisions(
    words: tuple[str, str],
    what: options.CaseOptions,
    confirming: ConfirmOptions,
    device: str,
    config: Path,
    folder: _Folder,
    latency: bool | None,
    minutes: float,
) -> ComparisonView:
    from harness.judge.confirm import SessionBudget, decisions_of, explainer
    from harness.judge.stats.turns import Arm
    from harness.tools.ab.revision_pair import RevisionPair
    from harness.tools.shared.comparison_view import ComparisonView
    from harness.tools.shared.toolchain import Toolchain

    cases, cache = case_ids(what), cache_root()
    base, head = (revision(word, config, cache) for word in words)
    if base.commit == head.commit:
        raise UsageError(f"{base} and {head} are the same revision", hint="name two that differ")
    with Screen() as screen:
        run_options = on_each_revision(what, select_one(device, cache, screen.say))
        first, second = (Toolchain.of(side, cache, run_options, screen.say) for side in (base, head))
        pair = RevisionPair(first, second, folder.keep, latency, SessionBudget(minutes, say=screen.say))
        explain = explainer(
            "compare", {Arm.BASE: first, Arm.HEAD: second}, {arm: file.path for arm, file in folder.files.items()}
        )
        result = pair.compare(cases, confirming.rules, confirming.most_sessions, explain)
    keep(decisions_of(result.cases, "compare", base.name, head.name))
    return ComparisonView(result, confirming.rules, f"base is {base}, head is {head}{folder.remark}")
