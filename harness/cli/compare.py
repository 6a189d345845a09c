"""`adreno-bench compare`: two sets of records or baselines, or two revisions of the compiler, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import (
    DEFAULT_COMPILER_CONFIG,
    DEFAULT_SUITE,
    AsJson,
    AsShipped,
    CaseGlob,
    CompilerConfig,
    DeviceName,
    FloorMs,
    MostSessions,
    Relevant,
    SuiteFile,
    WithQuirks,
)

if TYPE_CHECKING:
    from harness.judge.comparison import Result
    from harness.judge.sides import SeriesKey, Side
    from harness.judge.stats.pair import Rules
    from harness.judge.stats.sequential import Arm
    from harness.revisions.toolchain import RunOptions
    from harness.run.record import Record


def compare(
    base: Annotated[
        str,
        typer.Argument(metavar="BASE", help="A records file, a folder of baselines, a release of TVM, or a commit."),
    ],
    head: Annotated[str, typer.Argument(metavar="HEAD", help="The same, of what is in question.")],
    case: CaseGlob = None,
    relevant: Relevant = 3.0,
    floor_ms: FloorMs = 0.05,
    states: Annotated[
        bool,
        typer.Option("--states", help="BASE and HEAD are states of a device: unchanged artifacts are no control."),
    ] = False,
    suite: SuiteFile = DEFAULT_SUITE,
    device: DeviceName = "virtual",
    as_shipped: AsShipped = False,
    with_quirks: WithQuirks = None,
    config: CompilerConfig = DEFAULT_COMPILER_CONFIG,
    records: Annotated[
        Path | None,
        typer.Option("--records", metavar="FOLDER", help="Keep what two revisions measured: base.jsonl, head.jsonl."),
    ] = None,
    most_sessions: MostSessions = 16,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
) -> None:
    """Say of each case what became of it between BASE and HEAD: wrong, broken, slower, faster, fixed or the same.

    Records and baselines are compared as they are: only what ran on the same identity; a latency changes only by the
    evidence of several sessions on each side, and with less the verdict is `inconclusive`. If artifacts that are the
    same on both sides look changed, the run is unfit and no latency is believed.

    Releases of TVM and commits of the repository that --config names are installed, the suite is built with both and
    run on the device, and what looks slower or faster is measured in turns until it is certain.
    """
    from harness.cli import verdicts
    from harness.cli.screen import out
    from harness.failures import UsageError
    from harness.judge.comparison import exit_code
    from harness.judge.path_ranking import path_flips, path_means
    from harness.judge.stats.pair import Rules

    if as_json and markdown:
        raise UsageError("--json and --markdown exclude each other", hint="choose one")
    rules = Rules(relevant=relevant / 100, floor_ms=floor_ms)
    given = [Path(word).exists() for word in (base, head)]
    if all(given):
        result, remark = _of_records(Path(base), Path(head), case, rules, gauged=not states)
    elif any(given):
        file, other = (base, head) if given[0] else (head, base)
        raise UsageError(
            f"there is no file {other}, and {file} is one: what was measured before cannot be measured in turns",
            hint="name two files, or two revisions",
        )
    elif states:
        raise UsageError("--states goes with two files of records", hint="leave it out")
    else:
        from harness.revisions.toolchain import RunOptions

        asked = RunOptions(suite, device, as_shipped, tuple(with_quirks or ()))
        result, remark = _of_revisions((base, head), asked, case, config, rules, most_sessions, records)
    means, flips = path_means(result.cases), path_flips(result.cases, rules)
    if as_json:
        out(verdicts.as_json(result, means, flips))
    else:
        texts = [
            verdicts.verdict_table(result.cases, markdown=markdown),
            verdicts.summary(result.fitness, means, flips, markdown=markdown),
            remark,
            _emulated(result),
        ]
        out("\n\n".join(text for text in texts if text))
    raise typer.Exit(exit_code(result))


def _of_records(base: Path, head: Path, globs: list[str] | None, rules: Rules, *, gauged: bool) -> tuple[Result, str]:
    from harness.judge.compare import compare_sides

    sides = _load(base, globs), _load(head, globs)
    return compare_sides(*sides, rules, gauged=gauged), _remark(*sides)


def _of_revisions(
    words: tuple[str, str],
    asked: RunOptions,
    globs: list[str] | None,
    config: Path,
    rules: Rules,
    most_sessions: int,
    folder: Path | None,
) -> tuple[Result, str]:
    from dataclasses import replace

    from device_runner.fleet.select import select_one
    from harness.cases.suite import choose, load_suite
    from harness.cli.screen import Screen
    from harness.failures import UsageError
    from harness.quirks import policy_of
    from harness.revisions.sides import Sides
    from harness.revisions.sources import revision
    from harness.revisions.toolchain import Toolchain
    from harness.run.record import RecordFile
    from harness.store import cache_root

    policy_of(asked.as_shipped, asked.but_for)
    cases = [case.id for case in choose(load_suite(asked.suite), globs)]
    base, head = (revision(word, config, cache_root()) for word in words)
    if base.commit == head.commit:
        raise UsageError(f"{base} and {head} are the same revision", hint="name two that differ")
    with Screen() as screen:

        def keep(side: Arm, record: Record) -> None:
            if folder:
                RecordFile(folder / f"{side.value}.jsonl").append(record)

        asked = replace(asked, device=select_one(asked.device, cache_root(), screen.say))
        chains = [Toolchain.of(one, cache_root(), asked, screen.say) for one in (base, head)]
        result = Sides(chains[0], chains[1], keep).compare(cases, rules, most_sessions)
    kept = f"; the records are in {folder}" if folder else ""
    return result, f"base is {base}, head is {head}{kept}"


def _load(source: Path, globs: list[str] | None) -> dict[SeriesKey, Side]:
    """What a file of records or a folder of baselines says. Raises UsageError if it says nothing."""
    from harness.cli.record_filter import read_records, wanted
    from harness.failures import UsageError
    from harness.judge import baseline
    from harness.judge.sides import sides_of

    if source.is_dir():
        sides = baseline.sides(baseline.load(source.absolute()))
    else:
        sides = sides_of(read_records(source, globs))
    chosen = {key: side for key, side in sides.items() if wanted(key.case, globs)}
    if not chosen:
        raise UsageError(f"{source} says nothing of these cases", hint="`adreno-bench show` lists a file's records")
    return chosen


def _remark(base: dict[SeriesKey, Side], head: dict[SeriesKey, Side]) -> str:
    """Why nothing could be compared."""
    identities = [sorted({key.identity for key in side}) for side in (base, head)]
    if set(identities[0]) & set(identities[1]):
        return ""
    return f"nothing was compared: base ran on {', '.join(identities[0])}, head on {', '.join(identities[1])}"


def _emulated(result: Result) -> str:
    """What a person should not take for a phone."""
    shown = (side for comparison in result.cases for side in (comparison.base, comparison.head) if side)
    emulated = dict.fromkeys(part for side in shown for part in side.emulated)
    return f"not the real thing: {', '.join(emulated)}; these times say nothing of a phone" if emulated else ""
