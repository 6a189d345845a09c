"""Names: of code that is loaded when it is asked for, mistyped ones, and ones that are too long."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from importlib import import_module
from operator import attrgetter
from typing import Any


def load(place: str) -> Any:
    """Import what stands at a place, `MODULE:NAME`."""
    module, _, name = place.partition(":")
    return attrgetter(name)(import_module(module))


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
