"""The figures of a page, as its script gets them."""

from __future__ import annotations

import json
import re
from typing import Any


def figures_of(page: str) -> list[dict[str, Any]]:
    """Data and layout of each figure, in their order on the page."""
    found = re.findall(r'<script type="application/json">(.*?)</script>\s*<div class="figure"', page, re.DOTALL)
    return [json.loads(text.rpartition('<script type="application/json">')[2]) for text in found]


def trace_of(figure: dict[str, Any], name: str) -> dict[str, Any]:
    """The trace of this name."""
    (found,) = (trace for trace in figure["data"] if trace.get("name") == name)
    return dict(found)
