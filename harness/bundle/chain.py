"""The lines of a results folder, each bound to the one before it and the first to the bundle."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, is_dataclass
from enum import Enum
from typing import Any

TURNS = "turns.jsonl"
DIGEST_DIGITS = 64
TURN, PEAKS, END = "turn", "peaks", "end"
"""What a line tells: what a turn came to; what the device does at best; that all turns are over."""
DEVICE, SEEN = "device", "seen"
"""Of a runner without Python: who the device is, whenever the script is started; what was seen in a turn."""


class Broken(ValueError):
    """A line is not what was written there."""


def line_of(told: dict[str, Any], before: str) -> tuple[bytes, str]:
    """A line with its newline, and its link, to which the next one is bound. `before` is the link before it."""
    text = json.dumps(told, sort_keys=True, default=_plain)
    link = link_of(text.encode(), before)
    return f"{link} {text}\n".encode(), link


def link_of(text: bytes, before: str) -> str:
    """What binds a line's text to all before it."""
    return hashlib.sha256(before.encode() + b"\n" + text).hexdigest()


def lines_of(content: bytes, begin: str) -> Iterator[tuple[dict[str, Any], str]]:
    """What the lines tell, with their links. A last line that was cut short is left out. Raises Broken."""
    before = begin
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        link, text = line[:DIGEST_DIGITS].decode(errors="replace"), line[DIGEST_DIGITS + 1 :]
        if link != link_of(text, before):
            raise Broken(f"line {number} of {TURNS} is not what was written after the line before it")
        before = link
        try:
            yield json.loads(text), link
        except ValueError as error:
            raise Broken(f"line {number} of {TURNS} is no JSON: {error}") from None


def _plain(value: Any) -> Any:
    """What a record's field is in JSON."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if hasattr(value, "item"):  # a number of numpy's
        return value.item()
    raise TypeError(f"{type(value).__name__} is nothing that a record has")
