"""The site of docs/ in a real browser: its links, its headings, on a telephone, and in the dark."""

from __future__ import annotations

import csv
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.browser import NAMES, PROGRAM, Page

ROOT = Path(__file__).parents[2]
PAGES = sorted(str(file.relative_to(ROOT / "docs").with_suffix(".html")) for file in (ROOT / "docs").rglob("*.md"))
DESK_PX, TELEPHONE_PX = 1280, 390
pytestmark = [
    pytest.mark.rest,
    pytest.mark.skipif(not PROGRAM, reason=f"no browser: apt-get install {NAMES[1]} (or {NAMES[0]})"),
    pytest.mark.skipif(not find_spec("sphinx") or not find_spec("furo"), reason="no Sphinx: make docs"),
]

LOST = """Promise.all([...document.querySelectorAll('.sidebar-drawer a, article a')]
  .filter((link) => link.protocol === 'file:')
  .filter((link) => link.pathname === location.pathname && link.hash && !document.getElementById(link.hash.slice(1)))
  .map((link) => link.href))"""
"""Links of a page to headings of its own that are not there."""
FILES = """[...new Set([...document.querySelectorAll('article a, .sidebar-drawer a')]
  .filter((link) => link.protocol === 'file:').map((link) => decodeURI(link.pathname)))]"""
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "--keep-going",
        "-d",
        f"{folder}/doctrees",
        "docs",
        str(folder),
    ]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_one_title_its_links_lead_somewhere_and_a_telephone_shows_all_of_it(
    page: Page, site: Path, name: str
) -> None:
    page.open(site / name, TELEPHONE_PX, 800, touch=True)
    assert page.ask("document.querySelectorAll('h1').length") == 1
    assert page.ask(LOST) == []
    assert [file for file in page.ask(FILES) if not Path(file).exists()] == []
    assert page.ask("document.scrollingElement.scrollWidth") <= TELEPHONE_PX


def test_every_page_is_in_the_sidebar(page: Page, site: Path) -> None:
    page.open(site / "index.html", DESK_PX, 800)
    assert {str(site / name) for name in PAGES} <= set(page.ask(FILES))


def test_the_sidebar_has_the_order_of_the_page_of_contents_and_no_name_twice(page: Page, site: Path) -> None:
    page.open(site / "index.html", DESK_PX, 800)
    names = page.ask("[...document.querySelectorAll('.sidebar-tree a')].map((link) => link.textContent.trim())")
    assert len(names) == len(set(names))
    places = "[...document.querySelectorAll('{} a[href$=\".html\"]')].map((link) => link.getAttribute('href'))"
    assert page.ask(places.format(".sidebar-tree")) == page.ask(places.format("article"))


@pytest.mark.parametrize("name", PAGES)
def test_a_desk_shows_whole_transcripts(page: Page, site: Path, name: str) -> None:
    page.open(site / name, DESK_PX, 800)
    assert page.ask("[...document.querySelectorAll('pre')].every((pre) => pre.scrollWidth <= pre.clientWidth)")
    assert page.ask("document.scrollingElement.scrollWidth") <= DESK_PX


def test_tables_of_node_tests_and_bisections_can_be_downloaded(page: Page, site: Path) -> None:
    page.open(site / "data/quirk-bisections.html", DESK_PX, 800)
    names = page.ask("[...document.querySelectorAll('article a[download]')].map((link) => link.getAttribute('href'))")
    assert names == ["quirk-bisections.csv", "quirk-bisections-2.csv"]
    with (site / "data/quirk-bisections.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["section", "revision", "defect", "what the program saw"]
    assert rows[0]["section"] == "tir-pipeline-tuple"
    assert len({row["section"] for row in rows}) > 5
    with (site / "data/node-tests.csv").open(encoding="utf-8", newline="") as file:
        assert {row["operator"] for row in csv.DictReader(file)} >= {"Abs", "Add"}
    whole = sum(line.startswith("|") for line in (ROOT / "docs/data/node-tests.md").read_text("utf-8").splitlines())
    written = sum(len(list(csv.reader(file.open(newline="")))) for file in (site / "data").glob("node-tests*.csv"))
    assert written == whole - 2, "all but the lines below the headers of two tables"


def test_it_is_dark_where_the_reader_wants_that(page: Page, site: Path) -> None:
    page.open(site / "index.html", DESK_PX, 800)
    light = page.ask(BACKGROUND)
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert light == "rgb(255, 255, 255)"
    assert page.ask(f"{BACKGROUND}.match(/\\d+/g).every((part) => part < 64)")


def test_the_search_knows_the_words_of_the_pages(site: Path) -> None:
    assert "broadcast" in (site / "searchindex.js").read_text("utf-8")
