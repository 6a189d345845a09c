"""Commands to run next, in texts and after Ctrl-C."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from device_runner.interrupt import interruption
from harness.base.terminal import tell
from harness.cli.completion import DEFAULT_RECORDS

_LOOK = re.compile(r"`(adreno-bench (diverge|kernels|show --all) [^`]+)`")


def runnable(text: str, records: Path | str, models: Sequence[str] = ()) -> str:
    """Complete each command of a text that looks at a record, so that it runs as printed.

    Args:
        text: What a command prints.
        records: Where the records of the case are.
        models: Options for suite and models, which `diverge` needs to build the network again.
    """

    def whole(command: re.Match[str]) -> str:
        file = [] if str(records) == str(DEFAULT_RECORDS) else ["--records", str(records)]
        named = re.search(r" --(model|suite) ", command[1])  # a record of `run --model` says so itself
        options = shlex.join([*file, *(models if command[2] == "diverge" and not named else ())])
        return f"`{command[1]} {options}`" if options else command[0]

    return _LOOK.sub(whole, text)


@contextmanager
def last_words(words: str | Callable[[], str], more: Sequence[str] = ()) -> Iterator[None]:
    """Print a line once the body, or the function that this decorates, has cleaned up after Ctrl-C.

    Args:
        words: What is kept and what comes next; `{command}` becomes the command line.
        more: Further words of the command line that continues.
    """
    try:
        yield
    finally:
        if interruption():
            command = shlex.join(["adreno-bench", *sys.argv[1:], *more])
            text = words if isinstance(words, str) else words()
            tell("interrupted: " + text.replace("{command}", f"`{command}`"))
