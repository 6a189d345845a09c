"""What the page of a hundred cases costs: its size, the time to write it, and the time in which a browser draws it.

python -m benchmarks.report_page

Draws the page and, as a yardstick of the same host, one chart of a history by plotly. Needs a browser (`make browser`).
"""

from __future__ import annotations

import tempfile
import time
from itertools import groupby
from pathlib import Path

from benchmarks.browser import Page, browser
from benchmarks.synthetic_history import history
from benchmarks.synthetic_suite import suite
from harness.base.tables import size
from harness.judge.report.site import write_site
from harness.judge.report.suite_page import write_report

MODELS = 17
"""Six cases each."""
PAINTED = "performance.getEntriesByType('paint').some((one) => one.name === 'first-contentful-paint')"
PAINTED_MS = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
LOADED_MS = "performance.getEntriesByType('navigation')[0].loadEventEnd"


def main() -> None:
    """Print the numbers."""
    builds = [list(group) for _, group in groupby(suite(MODELS), key=lambda record: record.case)]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, browser(Path(folder, "home")) as page:
        ours, site = Path(folder, "report.html"), Path(folder, "site")
        site.mkdir()
        begun = time.process_time()
        write_report(ours, builds)
        wrote_s = time.process_time() - begun
        write_site(history(commits=2, series=1), site, "graphs.html")
        drawn = {
            f"the page of {len(builds)} cases": _drawn(page, ours, "true"),
            "one chart by plotly": _drawn(page, site / "charts.html", "!!document.querySelector('.xtick')"),
        }
        print(f"{len(builds)} cases: {size(ours.stat().st_size)}, written in {wrote_s:.2f} s of processor time")
        for name, (cpu_s, loaded_ms) in drawn.items():
            print(f"{name}: {cpu_s:.2f} s of the browser's processor time, painted and loaded after {loaded_ms:.0f} ms")


def _drawn(page: Page, file: Path, ready: str) -> tuple[float, float]:
    """Processor time of a browser that is warm, and when it had painted and loaded, in ms."""
    page.open(file, 1280, 900)
    before = page.cpu_s()
    page.open(file, 1280, 900)
    page.wait_for(f"{PAINTED} && {ready}")
    return page.cpu_s() - before, page.ask(f"Math.max({PAINTED_MS}, {LOADED_MS})")


if __name__ == "__main__":
    main()
