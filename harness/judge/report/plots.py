"""What `profile --plot FILE.html` writes: a page of profiles as a roofline, that stands alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from harness.base.failures import UsageError
from harness.judge.report.figures import roofline
from harness.judge.report.page import require_page, write_page
from harness.measure.kernels.profile import Profile


def plot_roofline(profiles: Sequence[Profile], file: Path) -> None:
    """Write a page of one or two profiles. Raises UsageError for what cannot be drawn, SetupMissing without plotly."""
    require_page(file)
    figure = roofline(profiles)
    if figure is None:
        raise UsageError("there is nothing to draw", hint="of no operator it is known how much it computes")
    write_page(file, "roofline.html.j2", title="Roofline", profiles=profiles, roofline=figure)
