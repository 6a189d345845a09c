"""All that is printed goes through here: nothing that others wrote may command the terminal.

Devices, models, records and archives from others have a say in what we print: names, messages, logs. A terminal obeys
escape sequences in them, which move the cursor, rename the window or hide lines. A test forbids any other way.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

OUTPUT = "the output"
"""Name of the file in an error of writing where the program prints."""


class ReaderGone(Exception):
    """The reader of the output has seen enough. Not an OSError: click would end with 1, which means "slower"."""


def open_missing_streams() -> None:
    """Open the null device in place of standard streams that the caller closed, which Python has as None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # in the order of their descriptors
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 -- until the program ends


def plain(text: str) -> str:
    """Return a text without what a terminal would obey."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


IN_ASCII = str.maketrans("±\u00d7→\u2013—µ·≤≥…°✓✗○■▁▂▃▄▅▆▇█", "~x>--u.<>~ +xo#.:-=+*%#")
"""What is printed, sign by sign, where a terminal or a pipe has ASCII alone."""


def encodable(text: str, stream: TextIO) -> str:
    """Return a text as far as a stream can write it; the signs of ours have others in ASCII."""
    encoding = stream.encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(IN_ASCII).encode(encoding, "replace").decode(encoding)
    return text


def takes_colour(stream: TextIO) -> bool:
    """Return whether a stream is drawn in colour: NO_COLOR and FORCE_COLOR decide, else whether it is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


def write(text: str, stream: TextIO | None = None, *, painted: Callable[[str], str] = str) -> None:
    """Write text and a newline to standard output, or to `stream`; `painted` where that takes colour."""
    stream = stream or sys.stdout
    safe = encodable(plain(text), stream)
    try:
        stream.write((painted(safe) if takes_colour(stream) else safe) + "\n")
        stream.flush()
    except OSError as error:
        forget(stream)
        if isinstance(error, BrokenPipeError):
            raise ReaderGone from None
        error.filename = OUTPUT
        raise


def forget(stream: TextIO) -> None:
    """Send to nowhere what a stream could not write, which Python writes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def tell(text: str) -> None:
    """Write a line that is no result to standard error."""
    write(text, sys.stderr)


class TerminalLog(logging.Handler):
    """Writes what is logged to standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one message."""
        tell(self.format(record))
