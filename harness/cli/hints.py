"""Complete the commands of hints, so that they run as printed: with records file, suite and models."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from harness.cli.options import DEFAULT_RECORDS

_LOOK = re.compile(r"`(adreno-bench (diverge|kernels|show --all) [^`]+)`")


def runnable(text: str, records: Path | str, models: Sequence[str] = ()) -> str:
    """Complete each command of a text that looks at a record.

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
