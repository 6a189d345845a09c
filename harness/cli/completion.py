"""Completions for the shell: case ids, models, paths, devices, quirks.

They come from files alone, without devices, adb or TVM, so that Tab is quick. An unreadable file offers nothing; the
command itself names the error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import typer

DEFAULT_SUITE, DEFAULT_RECORDS = "adreno-bench.toml", "records.jsonl"
"""Default files of commands."""
LOOKED_AT_BYTES = 1 << 20
"""Size of the end of a records file that is read, however long the file is."""
_CASE_IN_RECORD = re.compile(rb'"case":"([a-z0-9_-]+)"')

Offer = Callable[[typer.Context, str], list[str]]


def _offered(find: Callable[[dict[str, Any]], Iterable[str]]) -> Offer:
    """Offer what `find` makes of the options typed so far, as far as it begins like the word; nothing if it fails."""

    def offer(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return [word for word in dict.fromkeys(find(ctx.params)) if word.startswith(incomplete)]
        except Exception:  # a traceback in the middle of a command line helps nobody
            return []

    offer.__doc__ = find.__doc__
    return offer


@_offered
def cases(options: dict[str, Any]) -> Iterable[str]:
    """Ids of the suite's cases, and globs for each of its models and paths."""
    from harness.base.suite import load_suite

    suite_cases = load_suite(Path(options.get("suite") or DEFAULT_SUITE)).cases
    yield from (case.id for case in suite_cases)
    yield from (f"{case.model}-*" for case in suite_cases)
    yield from (f"*-{case.path}-*" for case in suite_cases)


@_offered
def recorded_cases(options: dict[str, Any]) -> Iterable[str]:
    """Ids of the cases at the end of the records file."""
    with Path(options.get("records") or DEFAULT_RECORDS).open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LOOKED_AT_BYTES))
        return sorted({match.decode() for match in _CASE_IN_RECORD.findall(file.read())})


@_offered
def devices(_options: dict[str, Any]) -> Iterable[str]:
    """Yield the devices that every host has, and those opened here before."""
    from device_runner.store import cache_root

    folder = cache_root() / "identities"
    opened = sorted(unquote(file.stem) for file in folder.glob("*.json")) if folder.is_dir() else []
    return ["virtual", "local", "all", *opened]


@_offered
def models(_options: dict[str, Any]) -> Iterable[str]:
    """Networks of the zoo, and files of networks in this folder and its folders."""
    from harness.base.model import SUFFIXES
    from harness.compile.models.named import named_models

    here = Path()
    files = [str(file) for suffix in SUFFIXES for folder in ("", "*/") for file in here.glob(f"{folder}*{suffix}")]
    return [*named_models(), *sorted(files)]


@_offered
def paths(_options: dict[str, Any]) -> Iterable[str]:
    """Yield the paths that a suite may name."""
    from harness.compile.paths import PATHS

    return sorted(set(PATHS) - {"cpu"})


@_offered
def quirks(_options: dict[str, Any]) -> Iterable[str]:
    """Known defects of TVM."""
    from harness.compile.quirks import QUIRKS

    return [quirk.id for quirk in QUIRKS]
