"""Kernels that PoCL has compiled, handed from one virtual phone of a test run to the next, and from run to run.

Phones do not share one folder, nor do workers of pytest: PoCL 3.1 removes a file before it replaces it, so that of two
processes that compile the same program one fails (pocl/pocl #1480; of 160 in fours, each with four programs, one did).
Each has links to what is kept, and gives what it compiled when it is off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from device_runner.stand_ins.virtual.faults import FAULTS_VARIABLE

CACHE = "data/local/tmp/.cache/pocl/kcache"
"""Where PoCL keeps programs, below a phone's folder."""
PHONES = ("virtual", "virtual-1", "virtual-2", "virtual-3", "virtual-4")


@contextmanager
def warm_driver(folder: Path) -> Iterator[dict[str, bool]]:
    """Let virtual phones that start in this block keep compiled kernels; yields the fault that says so."""
    faults = {"driver_keeps_programs": True}
    file = folder / "faults.json"
    file.write_text(json.dumps(faults))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(FAULTS_VARIABLE, str(file))
        yield faults


def lend(kept: Path, cache: Path) -> None:
    """Let each phone of a cache have the kept kernels."""
    for phone in PHONES:
        link(kept, cache / phone / CACHE)


def keep(cache: Path, kept: Path) -> None:
    """Keep what the phones of a cache, none of which is on, have compiled."""
    for phone in PHONES:
        link(cache / phone / CACHE, kept)


def link(source: Path, target: Path) -> None:
    """Link each file of the programs in `source` that `target` has not, if both are on one file system."""
    for file in programs(source):
        linked = target / file.relative_to(source)
        linked.parent.mkdir(parents=True, exist_ok=True)
        with suppress(OSError):  # what is not handed on is compiled again
            os.link(file, linked)


def programs(folder: Path) -> Iterator[Path]:
    """Files of whole programs: PoCL's temporary ones lie beside their folders, and a log of a build grows."""
    return (file for file in folder.glob("*/*/**/*") if file.is_file() and file.name != "build.log")
