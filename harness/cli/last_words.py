"""The last line of a command that Ctrl-C ended: what is kept, and which command goes on."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from device_runner.interrupt import interruption
from harness.base.terminal import tell


@contextmanager
def last_words(words: str | Callable[[], str], more: Sequence[str] = ()) -> Iterator[None]:
    """Print a line once the body, or the function that this decorates, has cleaned up after Ctrl-C.

    Args:
        words: What is kept and what comes next; `{command}` stands for the command line.
        more: Words that the command line needs to go on.
    """
    try:
        yield
    finally:
        if interruption():
            command = shlex.join(["adreno-bench", *sys.argv[1:], *more])
            text = words if isinstance(words, str) else words()
            tell("interrupted: " + text.replace("{command}", f"`{command}`"))
