"""The page of a run in a real browser: on a desk, on a telephone, in the dark, on paper, and by the keyboard alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from benchmarks.browser import NAMES, PROGRAM, Page
from benchmarks.pictures import first_wrong_of
from benchmarks.synthetic_history import history
from benchmarks.synthetic_suite import suite
from harness.judge.compare import compare_sides
from harness.judge.report.comparison import export_comparison
from harness.judge.report.site import write_site
from harness.judge.report.suite_page import write_report
from harness.judge.sides import sides_of
from harness.measure.records.record import Record

pytestmark = pytest.mark.skipif(not PROGRAM, reason=f"no browser: apt-get install {NAMES[1]} (or {NAMES[0]})")

DESK_PX, TABLET_PX, PAPER_PX, TELEPHONE_PX = 1280, 780, 718, 390
MOST_BYTES = 3_000_000
CONTRAST = """(() => {
  const light = ([r, g, b]) => [r, g, b].map((one) => one / 255)
    .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, place) => sum + one * [0.2126, 0.7152, 0.0722][place], 0);
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const back = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = numbers(getComputedStyle(one).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const poor = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || element.closest('script, style')) continue;
    const pair = [light(numbers(getComputedStyle(element).color)), light(back(element))].sort((a, b) => b - a);
    if ((pair[0] + 0.05) / (pair[1] + 0.05) < 4.5) poor.add(element.outerHTML.slice(0, 80));
  }
  return [...poor];
})()"""
"""Elements whose text has a lower contrast than WCAG 2 asks at level AA (1.4.3)."""
UNNAMED = """[...document.querySelectorAll('input, svg, a, summary')].filter((one) =>
  !(one.getAttribute('aria-label') || one.textContent.trim() || one.closest('label')?.textContent.trim()))
  .map((one) => one.outerHTML.slice(0, 80))"""
AXE = os.environ.get("ADRENO_BENCH_TEST_AXE", "")
AXE_FINDINGS = """axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})
  .then((found) => found.violations.map((one) => one.id + ': ' + one.nodes[0].html.slice(0, 120)))"""
COVERED = """[...document.querySelectorAll('td[data-name]')].filter((one) => {
  const label = getComputedStyle(one, '::before'), [first] = one.childNodes;
  if (label.content === 'none' || !first) return false;
  const words = document.createRange();
  words.selectNodeContents(one);
  const rects = [...words.getClientRects()].filter((rect) => rect.width);
  const end = one.getBoundingClientRect().left + parseFloat(label.width);
  return rects.length && Math.min(...rects.map((rect) => rect.left)) < end;
}).map((one) => one.outerHTML.slice(0, 80))"""
"""Cells of a narrow window whose content lies over their label."""
WIDER = "document.scrollingElement.scrollWidth > innerWidth"
SHOWN = "[...document.querySelectorAll('article')].filter((one) => one.checkVisibility()).length"


def builds(records: list[Record]) -> list[list[Record]]:
    def key(record: Record) -> tuple[str, str]:
        return record.identity_key, record.case

    return [list(group) for _, group in groupby(sorted(records, key=key), key=key)]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three phones, with a gate in which something is slower."""
    file = tmp_path_factory.mktemp("report") / "report.html"
    base, head = suite(3, 3, 4), suite(3, 3, 4, slower=1.09)
    compared = export_comparison(compare_sides(sides_of(base), sides_of(head)))
    write_report(file, builds(head), compared, sections=[first_wrong_of(head)])
    return file


@pytest.fixture(scope="module")
def hundred(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("hundred") / "report.html"
    write_report(file, builds(suite(17)))
    return file


@pytest.fixture(autouse=True)
def _no_complaints(page: Page) -> Iterator[None]:
    page.complaints.clear()
    yield
    page.call("Emulation.setEmulatedMedia", media="", features=[])
    assert page.complaints == []


def show(page: Page, file: Path, width_px: int, scheme: str = "light") -> None:
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.open(file, width_px, 900, touch=width_px == TELEPHONE_PX)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width_px", [DESK_PX, TABLET_PX, TELEPHONE_PX])
def test_the_page_fits_its_window_and_can_be_read(page: Page, report: Path, width_px: int, scheme: str) -> None:
    show(page, report, width_px, scheme)
    assert not page.ask(WIDER)
    assert page.ask(COVERED) == []
    assert page.ask(CONTRAST) == []
    assert page.ask(UNNAMED) == []
    assert page.ask("performance.getEntriesByType('resource').filter((one) => !/^data:/.test(one.name)).length") == 0


@pytest.mark.skipif(not AXE, reason="ADRENO_BENCH_TEST_AXE names no folder of the npm package axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width_px", [DESK_PX, TELEPHONE_PX])
def test_axe_core_finds_nothing(page: Page, report: Path, tmp_path: Path, width_px: int, scheme: str) -> None:
    script = (Path(AXE) / "axe.min.js").read_text("utf-8")
    write_site(history(commits=2, series=2), tmp_path, "graphs.html")
    for file in (report, *sorted(tmp_path.glob("*.html"))):
        show(page, file, width_px, scheme)
        page.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.ask(f"{script}; {AXE_FINDINGS}") == [], file.name


def test_a_hundred_cases_are_small_and_drawn_for_less_than_one_chart_of_plotly(
    page: Page, hundred: Path, tmp_path: Path
) -> None:
    assert hundred.stat().st_size <= MOST_BYTES
    write_site(history(commits=2, series=1), tmp_path, "graphs.html")

    def cost_s(file: Path, drawn: str) -> float:
        show(page, file, DESK_PX)  # once before, so that the browser has what it needs for any page
        before = page.cpu_s()
        show(page, file, DESK_PX)
        page.wait_for(drawn)
        return page.cpu_s() - before

    assert page.ask("1") == 1
    ours = cost_s(hundred, "document.querySelectorAll('svg.strip').length >= 190")
    plotly = cost_s(tmp_path / "charts.html", "document.querySelector('.xtick') !== null")
    assert ours < plotly


def test_boxes_and_words_hide_cells_and_cases(page: Page, report: Path) -> None:
    show(page, report, DESK_PX)
    every = page.ask(SHOWN)
    assert every == 3 * 18
    page.ask("document.querySelector('.toggles input[value=\"float16 tuned\"]').click()")
    assert page.ask(SHOWN) == every / 2
    assert (
        page.ask("[...document.querySelectorAll('.entry')].filter((one) => one.checkVisibility()).length") == every / 2
    )
    page.ask(
        "{ const typed = document.getElementById('filter'); typed.value = 'resnet18 wrong';"
        " typed.dispatchEvent(new Event('input')); }"
    )
    assert page.ask(SHOWN) == 3


def test_a_cell_leads_to_its_case_by_the_keyboard(page: Page, report: Path) -> None:
    show(page, report, DESK_PX)
    page.ask("document.querySelector('.entry').focus()")
    for kind in ("keyDown", "keyUp"):
        page.call("Input.dispatchKeyEvent", type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
    page.wait_for("document.querySelector('article:target') !== null && scrollY > 0")
    named = "decodeURIComponent(location.hash.slice(1))"
    assert page.ask(f"document.querySelector('article:target').id === {named}")


def test_paper_gets_every_case_and_no_box(page: Page, report: Path) -> None:
    show(page, report, PAPER_PX)
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    page.call("Emulation.setEmulatedMedia", media="print", features=[dark])
    assert not page.ask(WIDER)
    assert page.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.ask(SHOWN) == 3 * 18
    assert page.ask("getComputedStyle(document.querySelector('.filters')).display") == "none"
    assert page.call("Page.printToPDF")["data"]
