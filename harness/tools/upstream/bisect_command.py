"""`adreno-bench bisect`: which release or commit of the compiler did it?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from device_runner.names import suggestion
from device_runner.selection import select_one
from device_runner.store import cache_root
from harness.base.failures import UsageError
from harness.base.outcome import ExitCode
from harness.base.tables import table
from harness.cli.completion import quirks
from harness.cli.hints import last_words
from harness.cli.options import (
    DEFAULT_DEVICE,
    MODEL_OPTIONS,
    AsJson,
    CaseOptions,
    DeviceName,
    grouped,
    refuse_options,
    seldom_option,
)
from harness.cli.rule_options import ConfirmOptions
from harness.judge.decisions import keep
from harness.judge.report.screen import Screen, out, out_json
from harness.judge.report.table import milliseconds
from harness.judge.stats.shares import signed_share
from harness.tools.shared.revision_options import (
    DEFAULT_COMPILER_CONFIG,
    CompilerConfig,
    CompilerRepo,
    case_ids,
    on_each_revision,
)
from harness.tools.shared.revisions import Revision, revision
from harness.tools.upstream.bisect.line import describe, revisions_between

if TYPE_CHECKING:
    from harness.tools.shared.revision_search import RevisionSearch
    from harness.tools.upstream.bisect.bisection import BisectionResult
    from harness.tools.upstream.bisect.judging import Inspection, Reason

_OF_CASES = (
    *("suite", "case", *MODEL_OPTIONS, "as_shipped", "with_quirks", "schedules", "reason", "device", "fresh"),
    *("relevant", "relevant_kernels", "floor_ms", "most_sessions"),
)
"""Options that say which case is bisected and how it is judged."""
SHOWN_LINES, SHOWN_COLUMNS = 40, 160


@grouped
@last_words("what was judged is kept; {command} continues")
def bisect(
    context: typer.Context,
    good: Annotated[str, typer.Option(metavar="REVISION", help="Release or commit that is good.")],
    bad: Annotated[str, typer.Option(metavar="REVISION", help="Later release or commit that is bad.")],
    what: CaseOptions,
    confirming: ConfirmOptions,
    reason: Annotated[
        str, typer.Option(help="What is bad: wrong, broken or slower. Default: what the bad end is.")
    ] = "",
    device: DeviceName = DEFAULT_DEVICE,
    config: CompilerConfig = DEFAULT_COMPILER_CONFIG,
    repo: CompilerRepo = None,
    only: Annotated[
        list[str] | None, seldom_option(metavar="PATH", help="Consider only commits that touch this path. Repeatable.")
    ] = None,
    quirk: Annotated[
        str,
        seldom_option(
            metavar="QUIRK",
            help="Bisect by the program of this defect's report instead of a case.",
            autocompletion=quirks,
        ),
    ] = "",
    graft: Annotated[
        str,
        seldom_option(metavar="RELEASE", help="With --quirk: put the files of --only into this release."),
    ] = "",
    fresh: Annotated[
        bool, seldom_option("--fresh", help="Start anew instead of resuming an earlier bisection.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the first release or commit with which a case is wrong, broken or slower.

    Checks both ends first, and skips what does not build. A revision that makes the same library as a judged one is
    not measured. Latencies are measured in turns with the good end. The same command resumes an interrupted bisection.
    Exit codes: 0 found, 5 it is one of several, 2 an end is not as given, 4 rig failure.
    """
    from harness.tools.upstream.bisect.bisection import Bisection

    paths = tuple(only or ())
    if quirk:
        refuse_options(context, _OF_CASES, "with --quirk")
        ends = _ends(good, bad, config, repo)
        raise typer.Exit(_bisect_report(quirk, revisions_between(*ends, paths=paths), graft, paths, config, as_json))
    refuse_options(context, ("graft",), "without --quirk")
    case_id, quirks, cache = _the_case(what), what.quirks, cache_root()
    line = revisions_between(*_ends(good, bad, config, repo), paths=paths)
    with Screen() as screen:
        options = on_each_revision(what, select_one(device, cache, screen.say))
        bisection = Bisection(
            case_id, line, options, _reason(reason), confirming.rules, confirming.most_sessions, cache, paths
        )
        answer = bisection.run(screen.say, fresh=fresh)
    keep(answer.search.confirmed(case_id, as_shipped=quirks.as_shipped))
    if as_json:
        out_json(_plain(answer, case_id))
    else:
        out(_text(answer, case_id, line))
        if paths:
            out(f"\n{_limited(paths, answer.search.bad)}")
    raise typer.Exit(ExitCode.GOOD if len(answer.search.candidates) == 1 else ExitCode.NOTHING_MEASURED)


def _ends(good: str, bad: str, config: Path, repo: Path | None) -> tuple[Revision, Revision]:
    return revision(good, config, cache_root(), repo), revision(bad, config, cache_root(), repo)


def _bisect_report(
    quirk: str, line: Sequence[Revision], graft: str, paths: Sequence[str], config: Path, as_json: bool
) -> ExitCode:
    """Print where the program of a report turns; return the exit code."""
    from harness.tools.shared.environment import environment
    from harness.tools.upstream.bisect.by_report import find_turn, grafted_commits, whole_commits
    from harness.tools.upstream.report import NO_REPORT, report_of, reported_quirks

    report = report_of(reported_quirks([quirk])[0])
    if report is None:
        raise UsageError(f"{quirk}: {NO_REPORT}")
    cache = cache_root()
    with Screen() as screen:
        if graft:
            if not paths:
                raise UsageError("--graft takes the files that --only names", hint="--only python/tvm")
            python = environment(revision(graft, config, cache), cache, screen.say)
            ask = grafted_commits(report.script, python, paths)
        else:
            ask = whole_commits(report.script, cache, screen.say)
        search = find_turn(line, ask, screen.say)
    candidates = search.search.candidates
    if as_json:
        looks = [{"revision": name, **dataclasses.asdict(answer)} for name, answer in search.answers.items()]
        out_json({"quirk": quirk, "last": search.search.good, "candidates": candidates, "looks": looks})
    else:
        rows = [(name, answer.state.value, answer.seen) for name, answer in search.answers.items()]
        out(table(rows, ("revision", "defect", "what the program saw"), prose=("what the program saw",)))
        out(f"\n{_turn(search.search, quirk)}")
        out(f"\n{describe(next(revision for revision in line if revision.name == candidates[-1]))}")
        if graft:
            out(f"\nall but {', '.join(paths)} is that of {graft}")
        elif paths:
            out(f"\n{_limited(paths, candidates[-1])}")
    return ExitCode.GOOD if len(candidates) == 1 else ExitCode.NOTHING_MEASURED


def _turn(search: RevisionSearch, quirk: str) -> str:
    if len(search.candidates) == 1:
        return f"the answer for {quirk} turns at {search.bad}; {search.good} is the last before it"
    return f"the answer for {quirk} turns at one of these:\n  " + "\n  ".join(search.candidates)


def _limited(paths: Sequence[str], bad: str) -> str:
    """Return what an answer is worth if only some commits were looked at."""
    return (
        f"only commits that touch {', '.join(paths)} were looked at. A change elsewhere shows at the first of them "
        f"after it: `--good {bad}^ --bad {bad}` tells whether it was this one"
    )


def _the_case(what: CaseOptions) -> str:
    """Return the one case that is meant. Raises UsageError for none, and for several."""
    if not what.case:
        raise UsageError("bisect takes one case", hint="name it with --case; `adreno-bench list` shows them")
    ids = case_ids(what)
    if len(ids) > 1:
        names = ", ".join(ids[:4]) + (", ..." if len(ids) > 4 else "")
        raise UsageError(f"bisect takes one case, and {len(ids)} match: {names}", hint="name one of them")
    return ids[0]


def _reason(text: str) -> Reason | None:
    from harness.tools.upstream.bisect.judging import Reason

    if not text:
        return None
    try:
        return Reason(text)
    except ValueError:
        choices = [reason.value for reason in Reason]
        raise UsageError(f"there is no reason {text!r}", hint=suggestion(text, choices)) from None


def _text(answer: BisectionResult, case: str, line: Sequence[Revision]) -> str:
    """Return every revision that was judged, the answer, what that revision is, and the beginning of the difference."""
    from harness.tools.upstream.bisect.bisection import shorten

    search = answer.search
    rows = [_row(inspection) for inspection in search.inspections]
    headers = ("revision", "is", "outcome", "wall ms", "change", "sessions", "because")
    parts = [table(rows, headers, prose=("because",), spare=("sessions",))]
    if len(search.candidates) == 1:
        parts.append(f"{search.bad} is the first that is {search.reason.value}; {search.good} is the last that is good")
    else:
        names = "\n  ".join(search.candidates)
        parts.append(
            f"the first that is {search.reason.value} is one of these, not all of which can be judged:\n  {names}"
        )
    bad = next(revision for revision in line if revision.name == search.bad)
    parts.append(describe(bad))
    if answer.diff:
        where = f"all {len(answer.diff)} lines are in {answer.folder}/kernels.diff"
        parts.append(f"kernels of {case}, {search.good} to {search.bad}; {where}")
        parts.append("\n".join(shorten(answer.diff, SHOWN_LINES, SHOWN_COLUMNS)))
    else:
        parts.append("the kernels are the same on both sides, or one side has none")
    return "\n\n".join(parts)


def _row(inspection: Inspection) -> tuple[str, ...]:
    return (
        inspection.name,
        inspection.state.value,
        inspection.outcome,
        " to ".join(milliseconds(ms) for ms in (inspection.good_ms, inspection.wall_ms) if ms is not None) or "-",
        "-" if inspection.relative is None else signed_share(inspection.relative),
        str(inspection.sessions),
        inspection.why if len(inspection.why) <= SHOWN_COLUMNS else f"{inspection.why[:SHOWN_COLUMNS]}…",
    )


def _plain(answer: BisectionResult, case: str) -> dict[str, Any]:
    search = answer.search
    return {
        "case": case,
        "reason": search.reason.value,
        "good": search.good,
        "first_bad": search.bad if len(search.candidates) == 1 else None,
        "candidates": search.candidates,
        "looks": list(map(dataclasses.asdict, search.inspections)),
        "diff_lines": len(answer.diff),
        "folder": str(answer.folder),
    }
