"""`adreno-bench bless`: make baselines from records."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.base.failures import UsageError
from harness.base.outcome import exit_code
from harness.base.tables import table
from harness.cli import options
from harness.cli.record_filter import read_sessions
from harness.judge.report.screen import out, out_json

if TYPE_CHECKING:
    from harness.judge.baseline import Blessing


def bless(
    records: options.RecordsPlace = str(options.DEFAULT_RECORDS),
    case: options.CaseGlob = None,
    model: options.ModelsOfRecords = None,
    baselines: options.BaselinesFolder = options.DEFAULT_BASELINES,
    emulated: Annotated[
        bool,
        typer.Option("--emulated", help="Also save latencies of emulated devices. They say nothing about a phone."),
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Save the latest right results as baselines.

    Review them as a diff. All sessions of the latest build in the records file count, so run the suite four times
    first. Refuses results that are wrong, broken, throttled or too noisy. Keeps only the correctness of an emulated
    device.
    """
    from harness.judge.baseline import bless_builds
    from harness.measure.records.view import without_garbage_collection

    builds = (
        b
        for b in read_sessions(records, options.matching(case))
        if not b[0].as_shipped and options.matches_models(b[0].case, model)
    )
    with without_garbage_collection():
        blessings = list(bless_builds(builds, emulated=emulated))
    if not blessings:
        if model:
            raise UsageError(
                f"nothing to bless of {', '.join(model)} in {records}", hint="`adreno-bench show` lists its records"
            )
        hint = "`adreno-bench run` makes some; what ran with --as-shipped cannot be a baseline"
        raise UsageError(f"nothing to bless in {records}", hint=hint)
    states = [_save(blessing, baselines) for blessing in blessings]
    if as_json:
        out_json([_plain(*pair) for pair in zip(blessings, states, strict=True)])
    else:
        rows = [_row(*pair) for pair in zip(blessings, states, strict=True)]
        headers = ("case", "identity", "baseline", "of", "why")
        out(table(rows, headers, prose=("of", "why"), alike=("identity",)))
    raise typer.Exit(exit_code(blessing.outcome for blessing in blessings))


def _save(blessing: Blessing, folder: Path) -> str:
    """Write the baseline, if there is one; what became of it."""
    if blessing.baseline is None:
        return "refused"
    return "written" if blessing.baseline.save(folder) else "unchanged"


def _row(blessing: Blessing, state: str) -> tuple[str, ...]:
    baseline = blessing.baseline
    timed = f"latency, sessions: {len(baseline.sessions)}" if baseline and baseline.sessions else "correctness only"
    what = timed if baseline else "-"
    return str(blessing.key), blessing.key.identity, state, what, "; ".join(blessing.notes) or "-"


def _plain(blessing: Blessing, state: str) -> dict[str, object]:
    baseline = blessing.baseline
    return {
        "case": blessing.key.case,
        "identity": blessing.key.identity,
        "baseline": state,
        "sessions": len(baseline.sessions) if baseline else None,
        "outcome": blessing.outcome.value,
        "notes": blessing.notes,
    }
