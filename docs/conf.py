"""The site of these pages: `make docs` builds it with Sphinx, MyST and furo."""

from __future__ import annotations

import re
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


def setup(app: Any) -> None:
    """Let Sphinx call us before it reads a page."""
    app.connect("source-read", add_sidebar)
