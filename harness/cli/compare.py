"""`adreno-bench compare`: two sets of records or baselines, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import AsJson, CaseGlob, FloorMs, Relevant

if TYPE_CHECKING:
    from harness.compare import Key, Side


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(compare)


def compare(
    base: Annotated[Path, typer.Argument(metavar="BASE", help="A records file, or a folder of baselines.")],
    head: Annotated[Path, typer.Argument(metavar="HEAD", help="The same, of what is in question.")],
    case: CaseGlob = None,
    relevant: Relevant = 3.0,
    floor_ms: FloorMs = 0.05,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
) -> None:
    """Say of each case what became of it between BASE and HEAD: wrong, broken, slower, faster, fixed or the same.

    Only what ran on the same identity is compared. A latency changes only by the evidence of several sessions on each
    side; with less the verdict is `inconclusive`.
    """
    from harness.cli import verdicts
    from harness.cli.screen import out
    from harness.compare import compare_sides, exit_code
    from harness.failures import UsageError
    from harness.ranking import geometric_means, ranking_flips
    from harness.stats.pair import Rules

    if as_json and markdown:
        raise UsageError("--json and --markdown exclude each other", hint="choose one")
    rules = Rules(relevant=relevant / 100, floor_ms=floor_ms)
    sides = _load(base, case), _load(head, case)
    compared = compare_sides(*sides, rules)
    means, flips = geometric_means(compared), ranking_flips(compared, rules)
    if as_json:
        out(verdicts.as_json(compared, means, flips))
    else:
        out(verdicts.verdict_table(compared, markdown=markdown))
        out("\n" + verdicts.summary(means, flips, markdown=markdown) if means else "")
        out(_remark(*sides))
    raise typer.Exit(exit_code(compared))


def _load(source: Path, globs: list[str] | None) -> dict[Key, Side]:
    """What a file of records or a folder of baselines says. Raises UsageError if it says nothing."""
    import fnmatch
    import sys

    from harness import baseline
    from harness.compare import sides_of
    from harness.failures import UsageError
    from harness.record import RecordFile

    if not source.exists():
        raise UsageError(f"there is no {source}", hint="give a records file or a folder of baselines")
    if source.is_dir():
        sides = baseline.sides(baseline.load(source.absolute()))
    else:
        loaded = RecordFile(source).load()
        for skipped in loaded.skipped:
            sys.stderr.write(f"skipped {skipped}\n")
        sides = sides_of(loaded.records)
    chosen = {
        key: side
        for key, side in sides.items()
        if not globs or any(fnmatch.fnmatchcase(key.case, glob) for glob in globs)
    }
    if not chosen:
        raise UsageError(f"{source} says nothing of these cases", hint="`adreno-bench show` lists a file's records")
    return chosen


def _remark(base: dict[Key, Side], head: dict[Key, Side]) -> str:
    """What a person should know of the comparison as a whole."""
    identities = [sorted({key.identity for key in side}) for side in (base, head)]
    if not set(identities[0]) & set(identities[1]):
        return f"nothing was compared: base ran on {', '.join(identities[0])}, head on {', '.join(identities[1])}"
    emulated = dict.fromkeys(part for side in (*base.values(), *head.values()) for part in side.emulated)
    return f"not the real thing: {', '.join(emulated)}; these times say nothing of a phone" if emulated else ""
