"""Tables of long pages in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def unpadded_markdown(rows: Iterable[Sequence[str]], headers: Sequence[str]) -> str:
    """Return a Markdown table without alignment, which would make a page more than twice as long."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (headers, ["---"] * len(headers), *rows))
