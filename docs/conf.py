"""The site of these pages: `make docs` builds it with Sphinx, MyST and furo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent

project = "adreno-bench"
html_title = "adreno-bench"
extensions = ["myst_parser"]
myst_heading_anchors = 4
exclude_patterns = ["example"]
highlight_language = "none"
html_theme = "furo"
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
    """Add to the page of contents what makes the sidebar, which GitHub would show as text."""
    if page == "index":
        for title, folder in GROUPS.items():
            pages = "\n".join(f"{folder}/{file.stem}" for file in sorted((DOCS / folder).glob("*.md")))
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n"


def setup(app: Any) -> None:
    """Let Sphinx call us before it reads a page."""
    app.connect("source-read", add_sidebar)
