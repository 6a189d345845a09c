"""`adreno-bench compare`: two sets of records or baselines, or two revisions of the compiler, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from device_runner.selection import select_one
from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.cli.options import (
    DEFAULT_COMPILER_CONFIG,
    DEFAULT_DEVICE,
    MODEL_OPTIONS,
    AsJson,
    CaseOptions,
    CompilerConfig,
    ConfirmOptions,
    DeviceName,
    Minutes,
    TableExports,
    grouped,
    output_option,
    refuse_options,
    seldom_option,
)
from harness.cli.record_filter import load_sides
from harness.judge.report import verdicts
from harness.judge.report.screen import Screen, out, out_json, out_whole
from harness.judge.report.verdicts import keep_for_history
from harness.judge.revisions.sources import revision

if TYPE_CHECKING:
    from harness.judge.compare import ComparisonResult
    from harness.judge.sides import SeriesKey, Side
    from harness.measure.records.record import Record


@grouped
def compare(
    context: typer.Context,
    base: Annotated[
        str,
        typer.Argument(metavar="BASE", help="Base: records, a folder of baselines, a TVM release, or a commit."),
    ],
    head: Annotated[str, typer.Argument(metavar="HEAD", help="Head: the same choices, for the side to judge.")],
    what: CaseOptions,
    confirming: ConfirmOptions,
    exports: TableExports,
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
        bool, seldom_option("--states", help="Compare two states of one device: unchanged artifacts are no control.")
    ] = False,
    device: DeviceName = DEFAULT_DEVICE,
    config: CompilerConfig = DEFAULT_COMPILER_CONFIG,
    records: Annotated[
        Path | None,
        seldom_option(metavar="FOLDER", help="Folder for the records of two revisions: base.jsonl and head.jsonl."),
    ] = None,
    as_json: AsJson = False,
    markdown: Annotated[bool, output_option("--markdown", help="Print Markdown for a pull request.")] = False,
) -> None:
    """Compare two releases, commits or records files.

    The verdict on each case is wrong, broken, slower, faster, fixed, same or inconclusive.

    Releases and commits are installed, built and run, and what looks slower or faster is measured in turns; if it is,
    its kernels on both sides are shown. Records and baselines are compared as they are, on the same identity. On an
    emulated GPU only outcomes are compared, unless you pass --latency. If artifacts that are the same on both sides
    look changed, the run is unfit and no latency is believed. Exit code 6: something looks slower and is undecided.
    """
    from harness.judge.compare import exit_code
    from harness.judge.path_ranking import path_flips, path_means
    from harness.judge.report.comparison import export_comparison, write_comparison
    from harness.measure.records.places import is_place
    from harness.measure.records.view import without_garbage_collection

    if as_json and markdown:
        raise UsageError("--json and --markdown exclude each other", hint="choose one")
    given = [is_place(word) for word in (base, head)]
    if all(given):
        unused = ("latency", "minutes", *MODEL_OPTIONS)
        refuse_options(context, unused, "with files: what was measured before is not measured in turns")
        context.with_resource(without_garbage_collection())
        result, remark = _of_records(base, head, what, confirming, gauged=not states)
    elif any(given):
        file, other = (base, head) if given[0] else (head, base)
        raise UsageError(
            f"there is no file {other}, but {file} is one: what was measured before cannot be measured in turns",
            hint="name two files, or two revisions",
        )
    elif states:
        raise UsageError("--states goes with two files of records", hint="leave it out")
    else:
        result, remark = _of_revisions((base, head), what, confirming, device, config, records, latency, minutes)
    means, flips = path_means(result.cases), path_flips(result.cases, confirming.rules)
    export = export_comparison(result, means, flips)
    write_comparison(export, **vars(exports))
    if as_json:
        out_json(export.plain())
    else:
        texts = [
            verdicts.headline(result.cases) if markdown else "",
            verdicts.verdict_table(result.cases, markdown=markdown),
            *verdicts.kernel_tables(result.cases, markdown=markdown),
            verdicts.summary(result.fitness, means, flips, markdown=markdown),
            remark,
            _emulated(result),
            verdicts.needed(result),
            verdicts.undecided(result, markdown=markdown),
        ]
        (out_whole if markdown else out)("\n\n".join(text for text in texts if text))
    raise typer.Exit(exit_code(result))


def _of_records(
    base: str, head: str, what: CaseOptions, confirming: ConfirmOptions, *, gauged: bool
) -> tuple[ComparisonResult, str]:
    from harness.judge.compare import compare_sides
    from harness.judge.confirm import settle

    sides = load_sides(base, what.covers), load_sides(head, what.covers)
    compared = compare_sides(*sides, confirming.rules, gauged=gauged)
    result = settle(compared, confirming.rules, lambda _: "what was measured before cannot be measured in turns")
    return result, _remark(*sides)


def _of_revisions(
    words: tuple[str, str],
    what: CaseOptions,
    confirming: ConfirmOptions,
    device: str,
    config: Path,
    folder: Path | None,
    latency: bool | None,
    minutes: float,
) -> tuple[ComparisonResult, str]:
    from harness.judge.confirm import SessionBudget, decisions_of, explainer
    from harness.judge.revisions.compare import RevisionPair
    from harness.judge.revisions.toolchain import Toolchain
    from harness.judge.stats.turns import Arm
    from harness.measure.records.record import RecordFile

    cases, cache = what.ids, cache_root()
    base, head = (revision(word, config, cache) for word in words)
    if base.commit == head.commit:
        raise UsageError(f"{base} and {head} are the same revision", hint="name two that differ")
    kept_in = {arm: RecordFile(folder / f"{arm.value}.jsonl") for arm in Arm} if folder else {}
    for file in kept_in.values():
        file.require_writable()
    with Screen() as screen:

        def keep(arm: Arm, record: Record) -> None:
            if arm in kept_in:
                kept_in[arm].append(record)

        options = what.on_each_revision(select_one(device, cache, screen.say))
        first, second = (Toolchain.of(one, cache, options, screen.say) for one in (base, head))
        pair = RevisionPair(first, second, keep, latency, SessionBudget(minutes, say=screen.say))
        explain = explainer("compare", pair, {arm: file.path for arm, file in kept_in.items()})
        result = pair.compare(cases, confirming.rules, confirming.most_sessions, explain)
    keep_for_history(decisions_of(result.cases, "compare", base.name, head.name))
    kept = f"; the records are in {folder}" if folder else ""
    return result, f"base is {base}, head is {head}{kept}"


def _remark(base: dict[SeriesKey, Side], head: dict[SeriesKey, Side]) -> str:
    """Return why nothing could be compared."""
    from harness.judge.sides import of_one_model

    identities = [sorted({key.identity for key in side}) for side in (base, head)]
    if set(identities[0]) & set(identities[1]):
        return ""
    ran = f"nothing was compared: base ran on {', '.join(identities[0])}, head on {', '.join(identities[1])}"
    return "; ".join(filter(None, (ran, of_one_model(*identities))))


def _emulated(result: ComparisonResult) -> str:
    """Return what a person should not take for a phone."""
    shown = (side for comparison in result.cases for side in (comparison.base, comparison.head) if side)
    emulated = dict.fromkeys(part for side in shown for part in side.emulated)
    return f"not the real thing: {', '.join(emulated)}; these times say nothing about a phone" if emulated else ""
