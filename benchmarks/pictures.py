"""Draw the pictures of README and docs: pages that `history publish` writes, opened in a browser.

python -m benchmarks.pictures

`docs/images/page.png` shows a made-up history: three models, one wrong, one slower. The others show the results that
docs/evidence/findings.md describes. Needs a browser (`make browser`).
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.browser import Page, browser
from benchmarks.synthetic_history import DAY_MS
from harness.cases.case import Case, Precision
from harness.history.asv_process import WITH_WORKAROUNDS
from harness.history.results import History, Point, Series, load
from harness.report.site import write_site
from harness.run.outcome import Outcome

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
MACHINE, FIRST_MS = "example phone, made-up numbers", 1_790_000_000_000
COMMITS, WRONG_SINCE, SLOWER_SINCE = 40, 30, 28
LATENCIES_MS = {"mobilenet_v1": (18.4, 11.2, 8.9), "resnet18": (41.0, 24.6, 15.3), "squeezenet1_1": (12.7, 9.1, 7.4)}
"""Of a made-up phone, on each of PATHS."""
PATHS = ("opencl", "texture", "clml")
WRONG = "output 0 is off by 14.5 at [0, 888]: -9.81404 instead of 4.68917 (tolerance 0.0139)"


def example() -> History:
    """A made-up history in which one case is wrong and one is slower."""
    rng = random.Random(1)
    hashes = [f"{rng.getrandbits(160):040x}" for _ in range(COMMITS)]
    series = [
        Series(
            MACHINE,
            Case(model, path, Precision.FLOAT32),
            WITH_WORKAROUNDS,
            list(_points(hashes, ms, (model, path), rng)),
        )
        for model, latencies in LATENCIES_MS.items()
        for path, ms in zip(PATHS, latencies, strict=True)
    ]
    machine = {"machine": MACHINE, "soc": "made up", "gpu": "made up"}
    return History({MACHINE: machine}, series, {MACHINE: hashes})


def _points(hashes: list[str], ms: float, case: tuple[str, str], rng: random.Random) -> Iterator[Point]:
    for number, commit in enumerate(hashes):
        date_ms = FIRST_MS + number * DAY_MS
        if case == ("resnet18", "texture") and number >= WRONG_SINCE:
            yield Point(commit, date_ms, Outcome.WRONG_RESULT, WRONG, tvm="0.27.0")
            continue
        slower = 1.18 if case == ("mobilenet_v1", "opencl") and number >= SLOWER_SINCE else 1.0
        wall_ms = ms * slower * rng.gauss(1, 0.008)
        yield Point(commit, date_ms, Outcome.OK, "", wall_ms, wall_ms * 0.99, wall_ms * 1.01, tvm="0.27.0")


FOOTER_TOP = "Math.ceil(document.querySelector('footer').getBoundingClientRect().top)"
DRAWN = "[...document.querySelectorAll('.figure')].slice(0, %d).every((figure) => figure.querySelector('.trace'))"


def draw(page: Page, file: Path, to: str, width_px: int, height_px: int | None = None) -> None:
    """Write the picture of a page, whole or its first pixels."""
    page.open(file, width_px, 400)
    page.open(file, width_px, height_px or page.ask(FOOTER_TOP))
    page.wait_for(DRAWN % (1 if height_px else 1000))
    page.picture(IMAGES / to)


def main() -> None:
    """Draw all pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary, browser(Path(temporary, "home")) as page:
        page.call("Emulation.setScrollbarsHidden", hidden=True)
        made_up, findings = Path(temporary, "example"), Path(temporary, "findings")
        made_up.mkdir()
        findings.mkdir()
        write_site(example(), made_up, "graphs.html")
        write_site(load(ROOT / "docs" / "example" / "results"), findings, "graphs.html")
        draw(page, made_up / "index.html", "page.png", 980)
        draw(page, made_up / "charts.html", "charts.png", 980, 780)
        draw(page, findings / "index.html", "findings.png", 1280)


if __name__ == "__main__":
    main()
