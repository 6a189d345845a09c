"""What `--plot FILE.html` writes: a page of sustained runs, or of profiles as a roofline, that stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.base.failures import UsageError
from harness.judge.report.figures import roofline, sustained
from harness.judge.report.page import write_page
from harness.measure.kernels.profile import Profile
from harness.measure.records.record import Record

MOST_RUNS = 20
"""Most runs on one page, which is read from top to bottom."""


def plot_sustained(records: Sequence[Record], file: Path) -> None:
    """Write a page of sustained runs. Raises UsageError for what cannot be drawn, SetupMissing without plotly."""
    _require_page(file)
    drawable = [record for record in records if record.sustained and record.sustained.bins]
    if not drawable:
        raise UsageError("nothing was measured in these sustained runs", hint="`show --sustained` says why")
    if len(drawable) > MOST_RUNS:
        raise UsageError(f"a page shows at most {MOST_RUNS} sustained runs", hint="name some of the cases")
    runs = [(record, sustained(record)) for record in drawable]
    write_page(file, "sustained.html.j2", title="Sustained runs", runs=runs)


def plot_roofline(profiles: Sequence[Profile], file: Path) -> None:
    """Write a page of one or two profiles. Raises UsageError for what cannot be drawn, SetupMissing without plotly."""
    _require_page(file)
    figure = roofline(profiles)
    if figure is None:
        raise UsageError("there is nothing to draw", hint="of no operator it is known how much it computes")
    write_page(file, "roofline.html.j2", title="Roofline", profiles=profiles, roofline=figure)


def _require_page(file: Path) -> None:
    if file.suffix != ".html":
        hint = f"name it {file.stem}.html; a browser prints it, or makes an image of it"
        raise UsageError(f"{file} is no page, and drawings are pages", hint=hint)
