"""How large the page of charts is, and how long a browser takes for it.

Run: python -m benchmarks.chart_page [COMMITS SERIES]

Prints sizes, seconds of our own writing, and seconds from opening the page to its first charts and to all of them.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.browser import browser
from benchmarks.synthetic_history import history
from harness.judge.report.page import PLOTLY
from harness.judge.report.points import POINTS
from harness.judge.report.site import write_site

CHARTS = "document.querySelectorAll('.figure')"
WIDTHS_PX = (1280, 390)


def main() -> None:
    """Make a history, write its site, open it."""
    commits, series = map(int, sys.argv[1:3] or ("2000", "100"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = history(commits, series)
        began = time.perf_counter()
        write_site(made, folder, "graphs.html")
        print(f"{commits} commits x {series} series: pages written in {time.perf_counter() - began:.1f} s")
        for file in ("charts.html", PLOTLY, POINTS):
            print(f"  {file}: {(folder / file).stat().st_size / 1e6:.2f} MB")
        for width in WIDTHS_PX:
            _look(folder, width)


def _look(folder: Path, width_px: int) -> None:
    """Open the page, and go through it chart by chart."""
    with browser(folder / f"browser-{width_px}") as page:
        began, used = time.perf_counter(), page.cpu_s()
        page.open(folder / "charts.html", width_px, 900, touch=width_px < 600)
        page.wait_for(f"{CHARTS}[0].querySelector('.xtick')")
        first = f"{time.perf_counter() - began:.2f} s ({page.cpu_s() - used:.2f} s of processor time)"
        count = page.ask(f"{CHARTS}.length")
        for number in range(count):
            page.ask(f"{CHARTS}[{number}].scrollIntoView()")
            page.wait_for(f"{CHARTS}[{number}].querySelector('.xtick')")
        every = f"{time.perf_counter() - began:.2f} s ({page.cpu_s() - used:.2f} s)"
        print(f"  {width_px} px: first chart after {first}, all {count} after {every}")
        assert not page.complaints, page.complaints


if __name__ == "__main__":
    main()
