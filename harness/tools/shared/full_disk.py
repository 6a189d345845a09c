"""A full disk while a tool writes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from device_runner.disk import disk_full


@contextlib.contextmanager
def writing(*folders: Path) -> Iterator[None]:
    """Raise DiskFull for an error of the block that means it; any other error passes."""
    try:
        yield
    except OSError as error:
        if failure := disk_full(error, *folders):
            raise failure from error
        raise
