"""`adreno-bench devices --health`: how each phone did, week by week."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

COLUMNS = ("phone", "week of", "records", "lost", "rig failures", "crashes", "recoveries", "throttled")


def show_health(records: Path, device: str | None, as_json: bool) -> None:
    """Show what a file of records says of the phones, or of one by its serial or name. Raises UsageError."""
    from harness.cli.record_filter import open_index
    from harness.cli.screen import out, out_json
    from harness.failures import UsageError
    from harness.run.health import health
    from harness.tables import table

    with open_index(records) as index:
        found = health(index.outcomes(device))
        if not found:
            of = f" of {device}" if device and index.devices else ""
            raise UsageError(f"there are no records{of} in {records}", hint="name another file with --records")
    if as_json:
        out_json([asdict(week) for week in found])
        return
    rows = [
        (w.phone, w.week or "?", w.records, w.lost, w.rig_failures, w.crashes, w.recoveries, _share(w.throttled_share))
        for w in found
    ]
    out(table(rows, COLUMNS, right=COLUMNS[2:], spare=("rig failures", "crashes")))


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
