"""Count pages and words of the docs: prose, without code, tables, and pages that commands print.

python -m benchmarks.docs_size
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
MOST_PAGES, MOST_WORDS, MOST_WORDS_OF_A_PAGE = 24, 20_000, 1_500
CONTENTS, PRINTED = "index.md", ("data/", "reference/commands.md", "reference/api.md")
"""The page of contents, and the pages that commands print, are no prose."""
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def words(text: str) -> int:
    """Return number of words in the prose of a page."""
    lines = _FENCE.sub("", text).splitlines()
    return sum(len(line.split()) for line in lines if not line.startswith("|"))


def pages() -> dict[str, int]:
    """Return number of words of each page of prose, by its path below docs/."""
    texts = {str(file.relative_to(DOCS)): file.read_text("utf-8") for file in sorted(DOCS.rglob("*.md"))}
    return {name: words(text) for name, text in texts.items() if name != CONTENTS and not name.startswith(PRINTED)}


def main() -> None:
    """Print the words of each page, and the sums with their goals."""
    counts = pages()
    for name, count in sorted(counts.items(), key=lambda item: item[1]):
        print(f"{count:6} {name}")
    print(f"{len(counts)} pages (goal: {MOST_PAGES}), {sum(counts.values())} words (goal: {MOST_WORDS})")


if __name__ == "__main__":
    main()
