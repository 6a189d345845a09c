"""Names that a person typed, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable


def suggestion(
    word: str, known: Iterable[str], *, otherwise: str = "known are", shown: Iterable[str] | None = None
) -> str:
    """Return a hint for a person who mistyped: the known word that is nearest, else all of them (or those `shown`).

    `otherwise` introduces that list.
    """
    import difflib

    known = list(known)
    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"{otherwise} {', '.join(known if shown is None else shown)}"
