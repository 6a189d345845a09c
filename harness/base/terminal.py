"""All that is printed goes through here: nothing that others wrote may command the terminal.

Devices, models, records and archives from others have a say in what we print: names, messages, logs. A terminal obeys
escape sequences in them, which move the cursor, rename the window or hide lines. A test forbids any other way.
"""

from __future__ import annotations

import logging
import sys
from typing import TextIO


def plain(text: str) -> str:
    """Text without what a terminal would obey."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


IN_ASCII = {ord(sign): other for sign, other in zip("±\u00d7→\u2013—µ·≤≥…", "~x>--u.<>~", strict=True)}
"""What is printed, sign by sign, where a terminal or a pipe has ASCII alone."""


def encodable(text: str, stream: TextIO) -> str:
    """Return a text as far as a stream can write it; the signs of ours have others in ASCII."""
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(IN_ASCII).encode(encoding, "replace").decode(encoding)
    return text


def write(text: str, stream: TextIO | None = None) -> None:
    """Write text and a newline to standard output, or to `stream`."""
    stream = stream or sys.stdout
    stream.write(encodable(plain(text), stream) + "\n")
    stream.flush()


def tell(text: str) -> None:
    """Write a line that is no result to standard error."""
    write(text, sys.stderr)


class TerminalLog(logging.Handler):
    """Writes what is logged to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        tell(self.format(record))
