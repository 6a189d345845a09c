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


def write(text: str, stream: TextIO | None = None) -> None:
    """Write text and a newline to standard output, or to `stream`."""
    stream = stream or sys.stdout
    stream.write(plain(text) + "\n")
    stream.flush()


def tell(text: str) -> None:
    """Write a line that is no result to standard error."""
    write(text, sys.stderr)


class TerminalLog(logging.Handler):
    """Writes what is logged to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        tell(self.format(record))
