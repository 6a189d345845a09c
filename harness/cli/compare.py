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
    states: Annotated[
        bool,
        typer.Option("--states", help="BASE and HEAD are states of a device: unchanged artifacts are no control."),
    ] = False,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
) -> None:
    """Say of each case what became of it between BASE and HEAD: wrong, broken, slower, faster, fixed or the same.

    Only what ran on the same identity is compared. A latency changes only by the evidence of several sessions on each
    side; with less the verdict is `inconclusive`. If artifacts that are the same on both sides look changed, the run
    is unfit and no latency is believed.
    """
    from harness.cli import verdicts
    from harness.cli.screen import out
    from harness.compare import compare_sides, exit_code
    from harness.failures import UsageError
    from harness.ranking import path_flips, path_means
    from harness.stats.pair import Rules

    if as_json and markdown:
        raise UsageError("--json and --markdown exclude each other", hint="choose one")
    rules = Rules(relevant=relevant / 100, floor_ms=floor_ms)
    sides = _load(base, case), _load(head, case)
    result = compare_sides(*sides, rules, gauged=not states)
    means, flips = path_means(result.cases), path_flips(result.cases, rules)
    if as_json:
        out(verdicts.as_json(result, means, flips))
    else:
        texts = [
            verdicts.verdict_table(result.cases, markdown=markdown),
            verdicts.summary(result.fitness, means, flips, markdown=markdown),
            _remark(*sides),
        ]
        out("\n\n".join(text for text in texts if text))
    raise typer.Exit(exit_code(result))


def _load(source: Path, globs: list[str] | None) -> dict[Key, Side]:
    """What a file of records or a folder of baselines says. Raises UsageError if it says nothing."""
    from harness import baseline
    from harness.cli.chosen import read_records, wanted
    from harness.compare import sides_of
    from harness.failures import UsageError

    if source.is_dir():
        sides = baseline.sides(baseline.load(source.absolute()))
    else:
        sides = sides_of(read_records(source, globs))
    chosen = {key: side for key, side in sides.items() if wanted(key.case, globs)}
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
