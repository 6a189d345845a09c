"""The site of these pages: `make docs` builds it with Sphinx, MyST and furo."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

project = "adreno-bench"
html_title = "adreno-bench"
extensions = ["myst_parser"]
myst_heading_anchors = 4
exclude_patterns = ["example"]
highlight_language = "none"
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = html_show_copyright = html_copy_source = False
suppress_warnings = ["misc.highlighting_failure"]

GROUPS = {
    "Learn": "tutorial",
    "Do": "how-to",
    "Look up": "reference",
    "Understand": "explanation",
    "Evidence": "evidence",
    "Printed tables": "data",
}
"""Headings of the sidebar, and the folder of each."""


def add_sidebar(_: Any, page: str, source: list[str]) -> None:
    """Add to the page of contents what makes the sidebar: its own links, in its order, by its names for them."""
    if page == "index":
        links = re.findall(r"\[([^\]]+)\]\(([\w/-]+)\.md\)", source[0])
        for title, folder in GROUPS.items():
            named = [(text[0].upper() + text[1:], place) for text, place in links if place.startswith(f"{folder}/")]
            entries = "\n".join(f"{text} <{place}>" for text, place in named)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{entries}\n```\n"


TABLES = "data/"
"""Pages of tables, each of which can be downloaded as CSV."""
_CELL = re.compile(r"(?<!\\)\|")
_MARKUP = re.compile(r"\[([^\]]+)\]\([^)]+\)|[`*]")


def tables_of(text: str) -> list[list[list[str]]]:
    """Return the tables of a page, those with the same headers as one: headers first, then rows with their section."""
    tables: dict[tuple[str, ...], list[list[str]]] = {}
    section, headers = "", ()
    for line in text.splitlines():
        if line.startswith("#"):
            section = _MARKUP.sub(r"\1", line.lstrip("# "))
        cells = tuple(_MARKUP.sub(r"\1", cell).strip() for cell in _CELL.split(line.strip())[1:-1])
        if not cells:
            headers = ()
        elif not headers:
            headers = cells
            tables.setdefault(headers, [])
        elif not all(set(cell) <= set("-:") for cell in cells):
            tables[headers].append([section, *cells])
    return [[["section", *headers], *rows] for headers, rows in tables.items()]


def csv_names(page: str, tables: int) -> list[str]:
    """Return the names of the files that the tables of a page are downloaded as."""
    stem = page.removeprefix(TABLES)
    return [f"{stem}{f'-{number}' if number > 1 else ''}.csv" for number in range(1, tables + 1)]


def add_downloads(_: Any, page: str, source: list[str]) -> None:
    """Add links to the tables of a page as CSV, below its title."""
    if page.startswith(TABLES):
        names = csv_names(page, len(tables_of(source[0])))
        links = ", ".join(f'<a href="{name}" download>{name}</a>' for name in names)
        title, _, rest = source[0].partition("\n")
        source[0] = f"{title}\n\n<p>Download: {links}</p>\n{rest}"


def write_downloads(app: Any, error: Exception | None) -> None:
    """Write the tables beside their pages."""
    if error or app.builder.format != "html":
        return
    for page in Path(app.srcdir, TABLES).glob("*.md"):
        tables = tables_of(page.read_text(encoding="utf-8"))
        for name, table in zip(csv_names(TABLES + page.stem, len(tables)), tables, strict=True):
            with Path(app.outdir, TABLES, name).open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(table)


def setup(app: Any) -> None:
    """Let Sphinx call us before it reads a page, and when it has written all."""
    app.connect("source-read", add_sidebar)
    app.connect("source-read", add_downloads)
    app.connect("build-finished", write_downloads)
