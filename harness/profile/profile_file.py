"""Profiles kept in a file: where the time of each case went, in a few kilobytes.

Each is a line of JSON, as `adreno-bench profile --json` writes it in many, and packed by itself, so that a file is
appended to with a single write and `zcat` reads it.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from device_runner.disk import writing
from harness.profile.profile import LARGEST_FILE_BYTES, Profile

ENDING = ".kernels.gz"


class Head(msgspec.Struct, frozen=True, gc=False):
    """Which profile a line is, without reading the rest of it."""

    case: str
    artifact: str
    as_shipped: bool = False


_head = msgspec.json.Decoder(Head)


def file_for(records: Path) -> Path:
    """Where the profiles of a file of records are kept."""
    return records.with_suffix(ENDING)


def append(file: Path, profile: Profile) -> None:
    """Keep a profile. Raises DiskFull, OSError."""
    packed = gzip.compress(profile.model_dump_json(by_alias=True).encode() + b"\n", mtime=0)
    with writing(file.parent):
        file.parent.mkdir(parents=True, exist_ok=True)
        target = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            os.write(target, packed)
        finally:
            os.close(target)


def read(file: Path, wanted: Callable[[Head], bool]) -> Iterator[Profile]:
    """The wanted profiles of a file, oldest first. Raises OSError, ValueError of a file that is torn or foreign."""
    for line in _unpacked(file).splitlines():
        if wanted(_head.decode(line)):
            yield Profile.model_validate_json(line)


def _unpacked(file: Path) -> bytes:
    """What a file holds. It comes from others, and a few bytes can be packed that fill the memory."""
    try:
        with gzip.open(file) as stream:
            content = stream.read(LARGEST_FILE_BYTES + 1)
    except (EOFError, zlib.error) as error:
        raise ValueError(f"torn: {error}") from error
    if len(content) > LARGEST_FILE_BYTES:
        raise ValueError(f"more than {LARGEST_FILE_BYTES >> 20} MB")
    return content
