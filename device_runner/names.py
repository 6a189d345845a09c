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


NEAR = 0.75
"""Share of letters that a mistyped word has in common with the one that was meant: `sample` and `shape` have 0.73."""
MOST_NAMES = 30
"""Most names that a hint lists: a folder of records has thousands of cases."""


def suggestion(
    word: str, words: Iterable[str], *, otherwise: str = "known are", choices: Iterable[str] | None = None
) -> str:
    """Return a hint for a person who mistyped: the known word that is nearest, else all of them (or `choices`).

    `otherwise` introduces that list.
    """
    words = list(words)
    close = max(words, key=lambda each: _nearness(word, each), default="")
    if close and _nearness(word, close) >= NEAR:
        return f"did you mean {close!r}?"
    names = words if choices is None else list(choices)
    more = [f"{len(names) - MOST_NAMES} more"] if len(names) > MOST_NAMES else []
    return f"{otherwise} {', '.join([*names[:MOST_NAMES], *more])}"


def _nearness(word: str, other: str) -> float:
    """Return how near two words are, from 0 to 1. The dashes of options say nothing."""
    from difflib import SequenceMatcher

    word, other = word.lstrip("-"), other.lstrip("-")
    short, long = sorted((word, other), key=len)
    begins = long.startswith(short) and 2 * len(short) >= len(long) > len(short)
    swapped = len(word) > 1 and sorted(word) == sorted(other)
    return max(NEAR if begins or swapped else 0.0, SequenceMatcher(a=other, b=word).ratio())


def shorten(name: str, most: int) -> str:
    """Return a name of at most `most` characters: one that is longer ends in a hash of the whole instead."""
    return name if len(name) <= most else f"{name[: most - 9]}_{sha256(name.encode()).hexdigest()[:8]}"
