"""Operators with other releases of TVM: this command, in the environment that holds each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from device_runner.failures import RigFailure
from harness.revisions.sources import revision
from harness.revisions.toolchain import CommandLine

LONGEST_S = 8 * 3600.0
"""For all the cells of a release. What is done is kept, so a run that was ended goes on."""


def cells_of(
    release: str, words: Sequence[str], config: Path, cache: Path, say: Callable[[str], None]
) -> list[dict[str, Any]]:
    """The cells that `adreno-bench ops WORDS` finds with a release or commit of TVM, installed if it is not there.

    Raises UsageError for what is none, NotInstallable, RigFailure.
    """
    line = CommandLine.of(revision(release, config, cache), cache, say)
    code, text, said = line.call(["ops", "--json", *words], LONGEST_S)
    try:
        cells: list[dict[str, Any]] = json.loads(text)
    except ValueError:
        raise RigFailure(
            f"{release} ended with code {code}: {said}", hint="run it again: what is done is kept"
        ) from None
    return cells
