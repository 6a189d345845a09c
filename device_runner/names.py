"""Names that a person typed, and what was probably meant; names that are too long."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256


def suggestion(
    word: str, words: Iterable[str], *, otherwise: str = "known are", choices: Iterable[str] | None = None
) -> str:
    """Return a hint for a person who mistyped: the known word that is nearest, else all of them (or `choices`).

    `otherwise` introduces that list.
    """
    import difflib

    words = list(words)
    close = difflib.get_close_matches(word, words, n=1)
    return f"did you mean {close[0]!r}?" if close else f"{otherwise} {', '.join(words if choices is None else choices)}"


def shorten(name: str, most: int) -> str:
    """Return a name of at most `most` characters: one that is longer ends in a hash of the whole instead."""
    return name if len(name) <= most else f"{name[: most - 9]}_{sha256(name.encode()).hexdigest()[:8]}"
