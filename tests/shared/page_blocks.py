"""The blocks of code on a page of the docs."""

from __future__ import annotations

import re

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, language: str = "") -> list[str]:
    """Return the blocks of a page in a language, in order; without one, those that name none."""
    return [text for name, text in _BLOCK.findall(page) if name == language]
