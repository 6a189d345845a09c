"""`adreno-bench bisect`: which release or commit of the compiler did it?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from device_runner.fleet.select import select_one
from device_runner.names import suggestion
from device_runner.store import cache_root
from harness.cli.options import (
    DEFAULT_COMPILER_CONFIG,
    DEFAULT_DEVICE,
    AsJson,
    CaseOptions,
    CompilerConfig,
    ConfirmOptions,
    DeviceName,
    grouped,
    seldom_option,
)
from harness.cli.screen import Screen, out, out_json
from harness.cli.table import milliseconds
from harness.cli.verdicts import keep_for_history
from harness.failures import UsageError
from harness.revisions.sources import Revision, describe, revision, revisions_between
from harness.run.outcome import ExitCode
from harness.tables import table

if TYPE_CHECKING:
    from harness.revisions.bisect.bisection import BisectionResult
    from harness.revisions.bisect.judging import Inspection, Reason

SHOWN_LINES, SHOWN_COLUMNS = 40, 160


@grouped
def bisect(
    good: Annotated[str, typer.Option(metavar="REVISION", help="Release or commit that is good.")],
    bad: Annotated[str, typer.Option(metavar="REVISION", help="Later release or commit that is bad.")],
    what: CaseOptions,
    confirming: ConfirmOptions,
    reason: Annotated[
        str, typer.Option(help="What is bad: wrong, broken or slower. Default: what the bad end is.")
    ] = "",
    device: DeviceName = DEFAULT_DEVICE,
    config: CompilerConfig = DEFAULT_COMPILER_CONFIG,
    repo: Annotated[
        Path | None, seldom_option(help="Local clone or bare repository, instead of that of the configuration.")
    ] = None,
    only: Annotated[
        list[str] | None, seldom_option(metavar="PATH", help="Consider only commits that touch this path. Repeatable.")
    ] = None,
    fresh: Annotated[
        bool, seldom_option("--fresh", help="Start anew instead of resuming an earlier bisection.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find the first release or commit with which a case is wrong, broken or slower.

    Checks both ends first, and skips what does not build. A revision that makes the same library as a judged one is
    not measured. Latencies are measured in turns with the good end. The same command resumes an interrupted bisection.
    Exit codes: 0 found, 5 it is one of several, 2 an end is not what it was said to be, 4 rig failure.
    """
    from harness.revisions.bisect.bisection import Bisection

    case_id, quirks, cache = _the_case(what), what.quirks, cache_root()
    ends = (revision(good, config, cache, repo), revision(bad, config, cache, repo))
    paths = tuple(only or ())
    line = revisions_between(*ends, paths=paths)
    with Screen() as screen:
        options = what.on_each_revision(select_one(device, cache, screen.say))
        bisection = Bisection(
            case_id, line, options, _reason(reason), confirming.rules, confirming.most_sessions, cache, paths
        )
        answer = bisection.run(screen.say, fresh=fresh)
    keep_for_history(answer.found.confirmed(case_id, as_shipped=quirks.as_shipped))
    if as_json:
        out_json(_plain(answer, case_id))
    else:
        out(_text(answer, case_id, line))
        if paths:
            out(f"\n{_limited(paths, answer.found.bad)}")
    raise typer.Exit(ExitCode.GOOD if len(answer.found.candidates) == 1 else ExitCode.NOTHING_MEASURED)


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
    found = what.ids
    if len(found) > 1:
        names = ", ".join(found[:4]) + (", ..." if len(found) > 4 else "")
        raise UsageError(f"bisect takes one case, and {len(found)} match: {names}", hint="name one of them")
    return found[0]


def _reason(text: str) -> Reason | None:
    from harness.revisions.bisect.judging import Reason

    if not text:
        return None
    try:
        return Reason(text)
    except ValueError:
        known = [reason.value for reason in Reason]
        raise UsageError(f"there is no reason {text!r}", hint=suggestion(text, known)) from None


def _text(answer: BisectionResult, case: str, line: Sequence[Revision]) -> str:
    """Return every revision that was judged, the answer, what that revision is, and the beginning of the difference."""
    from harness.revisions.bisect.bisection import shorten

    found = answer.found
    rows = [_row(inspection) for inspection in found.inspections]
    headers = ("revision", "is", "outcome", "wall ms", "change", "sessions", "because")
    parts = [table(rows, headers, prose=("because",), spare=("sessions",))]
    if len(found.candidates) == 1:
        parts.append(f"{found.bad} is the first that is {found.reason.value}; {found.good} is the last that is good")
    else:
        names = "\n  ".join(found.candidates)
        parts.append(
            f"the first that is {found.reason.value} is one of these, not all of which can be judged:\n  {names}"
        )
    bad = next(revision for revision in line if revision.name == found.bad)
    parts.append(describe(bad))
    if answer.diff:
        where = f"all {len(answer.diff)} lines are in {answer.folder}/kernels.diff"
        parts.append(f"kernels of {case}, {found.good} to {found.bad}; {where}")
        parts.append("\n".join(shorten(answer.diff, SHOWN_LINES, SHOWN_COLUMNS)))
    else:
        parts.append("the kernels are the same on both sides, or one side has none")
    return "\n\n".join(parts)


def _row(inspection: Inspection) -> tuple[str, ...]:
    return (
        inspection.name,
        inspection.state.value,
        inspection.outcome,
        "-" if inspection.wall_ms is None else milliseconds(inspection.wall_ms),
        "-" if inspection.relative is None else f"{inspection.relative:+.1%}",
        str(inspection.sessions),
        inspection.why if len(inspection.why) <= SHOWN_COLUMNS else f"{inspection.why[:SHOWN_COLUMNS]}…",
    )


def _plain(answer: BisectionResult, case: str) -> dict[str, Any]:
    found = answer.found
    return {
        "case": case,
        "reason": found.reason.value,
        "good": found.good,
        "first_bad": found.bad if len(found.candidates) == 1 else None,
        "candidates": found.candidates,
        "looks": list(map(dataclasses.asdict, found.inspections)),
        "diff_lines": len(answer.diff),
        "folder": str(answer.folder),
    }
