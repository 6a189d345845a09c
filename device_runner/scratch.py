"""Folders for temporary files, without those that killed processes left."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "adreno-bench-"
"""Beginning of the name of each; before its lock is held, a folder has another name."""


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder, and remove it in the end. Those of ours whose processes were killed are removed first.

    A folder is in use as long as this process or one that it forked lives. Raises OSError.
    """
    _remove_abandoned()
    made = Path(tempfile.mkdtemp(prefix=f".{PREFIX}"))
    lock = os.open(made, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = made.rename(made.with_name(made.name.removeprefix(".")))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)


def _remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):  # somebody else's, or in use, or gone
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.getuid():
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
