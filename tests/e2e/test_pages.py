"""The pages of a history in a real browser: on a desk and on a telephone, with few commits and with thousands."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest
from fake_records import a_record

from benchmarks.browser import NAMES, PROGRAM, Page
from benchmarks.synthetic_history import history
from harness.compile.compiler.tir import OperatorWork
from harness.judge.history.results import load
from harness.judge.report.page import PLOTLY, SCRIPT
from harness.judge.report.site import PAGES, write_site
from harness.measure.records.record import Record, RecordFile
from harness.tools.profile.figures import plot_roofline
from harness.tools.profile.measure import append_profile
from harness.tools.shared.kernels.profile import Operator, Peaks, Profile, kernels_file
from harness.tools.sustain.page import draw
from harness.tools.sustain.part import Sustained

pytestmark = [
    pytest.mark.rest,
    pytest.mark.skipif(not PROGRAM, reason=f"no browser: apt-get install {NAMES[1]} (or {NAMES[0]})"),
]

ROOT = Path(__file__).parents[2]
SCREENSHOTS = Path(os.environ.get("ADRENO_BENCH_SCREENSHOTS") or ROOT / ".asv" / "screenshots")
DESK_PX, TELEPHONE_PX = 1280, 390
WIDTHS = pytest.mark.parametrize("width_px", [DESK_PX, TELEPHONE_PX])
SERIES, MOST_BYTES = 30, 5_000_000

CHARTS = "document.querySelectorAll('.figure')"
BOXES = """[...%s.querySelectorAll('%s')].map((element) => {
  const { left, top, right, bottom } = element.getBoundingClientRect();
  return [element.textContent, left, top, right, bottom];
})"""
CUT_HINTS = """[...document.querySelectorAll('input')].filter((input) => {
  const style = getComputedStyle(input), pen = document.createElement('canvas').getContext('2d');
  pen.font = style.font;
  const room = input.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return pen.measureText(input.placeholder).width > room;
}).map((input) => input.placeholder)"""
"""Of boxes to type in, the hints that are wider than their box."""
TICKS, NAMES_OF_SERIES = ".xtick text, .ytick text", ".annotation-text-g text"

Box = tuple[str, float, float, float, float]
"""Its text, left, top, right and bottom."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the history that docs/evidence/findings.md tells of."""
    folder, results = tmp_path_factory.mktemp("kept"), ROOT / "docs" / "example" / "results"
    write_site(load(results), folder, "graphs.html", results)
    return folder


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a case of the same history, had its kernels been watched."""
    root = tmp_path_factory.mktemp("watched")
    results = shutil.copytree(ROOT / "docs" / "example" / "results", root / "results")
    for number, file in enumerate(results.glob("*/*.jsonl")):
        for record in RecordFile(file).load().records:
            append_profile(kernels_file(file), a_profile(record, number))
    write_site(load(results), root, "graphs.html", results=results)
    return next(root.glob("kernels-*.html"))


def a_profile(record: Record, number: int) -> Profile:
    """Some operators with names as long as they come, one of which is a little slower at each commit."""
    operators = []
    for place in range(9):
        function, size = f"fused_conv2d{place}_subtract4_divide4_multiply4_add11", 4 << place
        work = OperatorWork(
            function, [[1, size, 7, 7], [size, 512, 3, 3], [1, size, 7, 7]], 10**6, 10 ** (5 + place % 4), None
        )
        ms = 1.0 + place + number * (place == 3)
        operators.append(Operator(function=function, kernels=("k",), launches=1, ms=ms, threads=1, work=work))
    known = {"case": record.case, "artifact": record.artifact, "as_shipped": record.as_shipped, "tvm": record.tvm}
    total = sum(one.ms for one in operators)
    numbers = {"kernels_ms": total, "span_ms": total, "wall_ms": total}
    peaks = Peaks(copy_gb_s=10, float32_gflop_s=100)
    return Profile(**known, identity_key="k", gpu="G", operators=tuple(operators), peaks=peaks, **numbers)


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As long as the longest that the page is made for, with fewer series."""
    folder = tmp_path_factory.mktemp("long")
    write_site(history(commits=2000, series=SERIES), folder, "graphs.html")
    return folder


@pytest.fixture(autouse=True)
def _no_complaints(page: Page) -> Iterator[None]:
    page.complaints.clear()
    yield
    assert page.complaints == []


def show(page: Page, file: Path, width_px: int) -> None:
    page.open(file, width_px, 900, touch=width_px == TELEPHONE_PX)


def show_chart(page: Page, number: int) -> str:
    """Scroll to a chart, wait until it is drawn; the expression that finds it."""
    chart = f"{CHARTS}[{number}]"
    page.ask(f"{chart}.scrollIntoView()")
    page.wait_for(f"{chart}.querySelector('.xtick') !== null")
    return chart


def keep_picture(page: Page, name: str, width_px: int) -> None:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.picture(SCREENSHOTS / f"{name}-{width_px}.png")


def boxes(page: Page, element: str, selector: str) -> list[Box]:
    return [tuple(box) for box in page.ask(BOXES % (element, selector))]


def meet(one: Box, other: Box) -> bool:
    return one[1] < other[3] and other[1] < one[3] and one[2] < other[4] and other[2] < one[4]


@WIDTHS
@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_wider_than_its_window(page: Page, kept: Path, name: str, width_px: int) -> None:
    show(page, kept / name, width_px)
    keep_picture(page, name.removesuffix(".html"), width_px)
    if name == "charts.html":
        show_chart(page, 0)
    assert page.ask("document.scrollingElement.scrollWidth") <= width_px
    assert page.ask(CUT_HINTS) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_long_name_is_broken_on_a_telephone(page: Page, kept: Path, name: str) -> None:
    show(page, kept / name, TELEPHONE_PX)
    page.ask("document.querySelectorAll('h1, h2, h3, p:not(.lead), li').forEach((p) => p.append('x'.repeat(99)))")
    assert page.ask("document.scrollingElement.scrollWidth") <= TELEPHONE_PX


@WIDTHS
@pytest.mark.parametrize("site", ["kept", pytest.param("long", marks=pytest.mark.long)])
def test_the_names_of_series_cover_no_tick_and_no_text_leaves_its_chart(
    page: Page, request: pytest.FixtureRequest, site: str, width_px: int
) -> None:
    show(page, request.getfixturevalue(site) / "charts.html", width_px)
    chart = show_chart(page, 0)
    keep_picture(page, f"charts-{site}", width_px)
    names, ticks = boxes(page, chart, NAMES_OF_SERIES), boxes(page, chart, TICKS)
    assert len(names) == page.ask(f"{chart}.layout.annotations.length")
    assert len(ticks) >= 6
    assert [(a[0], b[0]) for a, b in combinations(names + ticks, 2) if meet(a, b)] == []
    _, *room = boxes(page, "document", ".figure")[0]
    assert [box[0] for box in names + ticks if box[1] < room[0] or box[3] > room[2] or box[4] > room[3]] == []


@WIDTHS
def test_the_kernels_of_a_case_are_drawn_and_fit_the_window(page: Page, watched: Path, width_px: int) -> None:
    show(page, watched, width_px)
    times = show_chart(page, 0)
    keep_picture(page, "operators-of-a-case", width_px)
    show_chart(page, 1)
    keep_picture(page, "kernels-of-a-case", width_px)
    assert page.ask("document.scrollingElement.scrollWidth") <= width_px
    assert page.ask(f"{times}.querySelectorAll('.trace.scatter').length") == 7  # and the rest as one line


@WIDTHS
def test_a_page_that_stands_alone_draws_from_any_folder(page: Page, tmp_path: Path, width_px: int) -> None:
    at_s = [float(second) for second in range(600)]
    hot = [second > 120 for second in at_s]
    columns: dict[str, list[int | float | None]] = {
        "at_s": [*at_s],
        "wall_ms": [4.0 if one else 3.0 for one in hot],
        "p90_ms": [4.1 if one else 3.1 for one in hot],
        "inferences": [200] * 600,
        "clock_mhz": [600 if one else 800 for one in hot],
        "power_level": [int(one) for one in hot],
        "gpu_c": [75.0 if one else 50.0 for one in hot],
    }
    run = a_record(standalone=True, parts=[Sustained(asked_s=600, lasted_s=600, columns=columns)])
    draw([run], tmp_path / "sustained.html")
    profiles = [a_profile(a_record(case=f"tiny-{path}-float32-untuned"), 1) for path in ("opencl", "texture")]
    plot_roofline(profiles, tmp_path / "roofline.html")
    for name, lines in {"sustained": 7, "roofline": 3}.items():
        show(page, tmp_path / f"{name}.html", width_px)
        figure = show_chart(page, 0)
        keep_picture(page, name, width_px)
        assert page.ask(f"{figure}.querySelectorAll('.trace.scatter').length") == lines
        assert page.ask("document.scrollingElement.scrollWidth") <= width_px
        assert (
            page.ask("performance.getEntriesByType('resource').filter((one) => !/^data:/.test(one.name)).length") == 0
        )


@pytest.mark.long
def test_a_page_of_2000_commits_is_small_and_draws_what_is_looked_at(page: Page, long: Path) -> None:
    page_bytes, *scripts_bytes = ((long / name).stat().st_size for name in ("charts.html", PLOTLY, SCRIPT))
    assert page_bytes * 100 / SERIES + sum(scripts_bytes) <= MOST_BYTES
    show(page, long / "charts.html", TELEPHONE_PX)
    show_chart(page, 0)
    drawn = page.ask(f"[...{CHARTS}].filter((chart) => chart.querySelector('.xtick')).length")
    assert 1 <= drawn < page.ask(f"{CHARTS}.length")


def test_what_is_printed_has_all_figures(page: Page, kept: Path) -> None:
    show(page, kept / "charts.html", TELEPHONE_PX)
    show_chart(page, 0)
    every = f"[...{CHARTS}].every((chart) => chart.querySelector('.xtick'))"
    assert not page.ask(every)
    page.call("Page.printToPDF")
    assert page.ask(every)


def test_a_click_on_a_name_hides_its_line_and_another_one_shows_it(page: Page, kept: Path) -> None:
    show(page, kept / "charts.html", DESK_PX)
    chart = show_chart(page, 1)  # of a path with latencies
    hidden = f"{chart}.data.filter((trace) => trace.visible === false).length"
    for count in (2, 0):  # a line with its confidence intervals, and its dots
        place = f"{chart}.querySelectorAll('.annotation-text-g')[1].getBoundingClientRect()"
        x, y = page.ask(f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({place})")
        for kind in ("mousePressed", "mouseReleased"):
            page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        page.wait_for(f"{hidden} === {count}")


@pytest.mark.long
def test_a_closer_look_has_ticks_of_its_own(page: Page, long: Path) -> None:
    show(page, long / "charts.html", DESK_PX)
    chart = show_chart(page, 0)
    page.ask(f"Plotly.relayout({chart}, {{'xaxis.range': [995.5, 1003.5]}}).then(() => true)")
    page.wait_for(f"{chart}.querySelectorAll('.xtick text').length === 8")


def test_a_chart_fits_a_window_that_was_turned(page: Page, kept: Path) -> None:
    show(page, kept / "charts.html", DESK_PX)
    chart = show_chart(page, 0)
    page.call("Emulation.setDeviceMetricsOverride", width=TELEPHONE_PX, height=900, deviceScaleFactor=1, mobile=False)
    page.wait_for(f"{chart}.querySelector('.main-svg').clientWidth < {TELEPHONE_PX}")
