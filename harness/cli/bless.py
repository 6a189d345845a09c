"""`adreno-bench bless`: make baselines from records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.options import DEFAULT_BASELINES, DEFAULT_RECORDS, BaselinesFolder, CaseGlob, RecordsFile

if TYPE_CHECKING:
    from pathlib import Path

    from harness.judge.baseline import Blessing


def bless(
    records: RecordsFile = DEFAULT_RECORDS,
    case: CaseGlob = None,
    baselines: BaselinesFolder = DEFAULT_BASELINES,
    emulated: Annotated[
        bool,
        typer.Option(
            "--emulated", help="Keep latencies of emulated devices, too, though they say nothing about a phone."
        ),
    ] = False,
) -> None:
    """Write the latest build of each case into the baselines, to be reviewed as a diff.

    All sessions of that build in the records file count, so run it a few times first. What is wrong, broken, throttled
    or too noisy is refused. Of an emulated device only the correctness is kept, unless --emulated is given.
    """
    from harness.cli.record_filter import read_records
    from harness.cli.screen import out
    from harness.cli.table import plain_table
    from harness.failures import UsageError
    from harness.judge.baseline import bless as judge
    from harness.run.outcome import exit_code

    blessings = judge(read_records(records, case), emulated=emulated)
    if not blessings:
        hint = "`adreno-bench run` makes some; what ran with --as-shipped cannot be a baseline"
        raise UsageError(f"nothing to bless in {records}", hint=hint)
    out(
        plain_table(
            [_row(blessing, baselines) for blessing in blessings], ("case", "identity", "baseline", "of", "why")
        )
    )
    raise typer.Exit(exit_code(blessing.outcome for blessing in blessings))


def _row(blessing: Blessing, folder: Path) -> tuple[str, ...]:
    kept = blessing.baseline
    if kept is None:
        return str(blessing.key), blessing.key.identity, "refused", "-", "; ".join(blessing.notes)
    what = f"latency, sessions: {len(kept.sessions)}" if kept.sessions else "correctness only"
    state = "written" if kept.save(folder) else "unchanged"
    return str(blessing.key), blessing.key.identity, state, what, "; ".join(blessing.notes) or "-"
