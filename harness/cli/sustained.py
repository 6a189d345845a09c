"""What sustained runs came to: the figures that people quote, as a table, as JSON, and drawn."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.table import complaints, milliseconds
from harness.tables import table

if TYPE_CHECKING:
    from harness.probes.sustained import Sustained
    from harness.run.record import Record

COLUMNS = (
    "case",
    "device",
    "outcome",
    "lasted",
    "first ms",
    "last ms",
    "last / first",
    "throttled",
    "hottest",
    "battery used",
)
SPARE = ("device", "battery used", "hottest", "outcome", "lasted")
"""What a narrow terminal gets along without, the first first."""


def sustained_table(records: Sequence[Record]) -> str:
    """A row for each sustained run, and a line for whatever is not plainly `ok`."""
    rows = [(r.case, r.device, r.outcome.value, *_figures(r, r.sustained)) for r in records if r.sustained]
    text = table(rows, COLUMNS, right=COLUMNS[3:], spare=SPARE)
    return "\n".join([text, *_explained(records), *complaints(records)])


def show_sustained(records: Sequence[Record], plot: Path | None, as_json: bool) -> None:
    """Show sustained runs, and draw them if `plot` names a file. Raises UsageError, SetupMissing."""
    from harness.cli.screen import out, out_json

    if plot:
        from harness.report.plots import plot_sustained

        plot_sustained(records, plot)
    if as_json:
        out_json([_with_figures(record) for record in records])
    else:
        out("\n".join([sustained_table(records), *([f"drawn in {plot}"] if plot else [])]))


def _with_figures(record: Record) -> dict[str, object]:
    """The record's line, with the figures beside what they are made of."""
    import json

    figures = record.sustained and record.sustained.figures
    return {**json.loads(record.line()), "figures": figures._asdict() if figures else None}


def _figures(record: Record, sustained: Sustained) -> tuple[str, ...]:
    figures = sustained.figures
    lasted = f"{sustained.lasted_s:.0f} of {sustained.asked_s:g} s"
    if not figures:
        return (lasted, "emulated" if record.path in record.emulated else "-", "-", "-", "-", "-", "-")
    return (
        lasted,
        milliseconds(figures.first_ms),
        milliseconds(figures.last_ms),
        f"{figures.ratio:.2f}",
        throttled_text(sustained),
        "-" if figures.hottest_c is None else f"{figures.hottest_c:.0f} °C",
        "-" if figures.battery_used_percent is None else f"{figures.battery_used_percent} %",
    )


def throttled_text(sustained: Sustained) -> str:
    """When heat slowed the phone down, and for how much of the time."""
    if sustained.throttled_after_s is not None:
        share = sustained.figures.throttled_share if sustained.figures else None
        return f"after {sustained.throttled_after_s:.0f} s" + ("" if share is None else f", for {share:.0%}")
    return "never" if sustained.shows_throttling else "unknown"


def _explained(records: Sequence[Record]) -> list[str]:
    lines = [
        f"  {record.case}: after {sustained.throttled_after_s:.0f} s {sustained.throttled_why}"
        for record in records
        if (sustained := record.sustained) and sustained.throttled_after_s is not None
    ]
    lines += [
        f"  {record.case}: stopped by hand after {record.sustained.lasted_s:.0f} s; what was measured is kept"
        for record in records
        if record.sustained and record.sustained.stopped
    ]
    windows = {record.sustained.figures.window_s for record in records if record.sustained and record.sustained.figures}
    if any(window < 60 for window in windows):
        lines.append(f"  first and last: {min(windows):g} s each, half of a run that is shorter than two minutes")
    return ["", *lines] if lines else []
