"""The phone's clock, which can be wrong; the host's cannot be changed.

So the phone tells the time that its clock shows (`date`, `sync:`), and its files, whose times are the host's, are made
older when its clock jumps forward: what is asked for by age is found as on a phone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

JUMP_FILE = "data/misc/clock_jump_s"
"""File for `date` with the seconds by which the phone's clock is ahead."""


class Clock:
    """The clock of the phone in a folder; right when the phone starts."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._ahead_s = 0
        (root / JUMP_FILE).unlink(missing_ok=True)

    def set_ahead(self, seconds: int) -> None:
        """Set the clock so far ahead of the host's. Raises OSError if the file that `date` reads cannot be written."""
        jump_s = seconds - self._ahead_s
        if not jump_s:
            return
        self._ahead_s = seconds
        for path in _all_below(self._root / "data"):
            with contextlib.suppress(OSError):  # it was removed meanwhile
                stat = path.lstat()
                os.utime(path, (stat.st_atime - jump_s, stat.st_mtime - jump_s), follow_symlinks=False)
        (self._root / JUMP_FILE).parent.mkdir(exist_ok=True)
        (self._root / JUMP_FILE).write_text(f"{seconds}\n")


def _all_below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent) / name for name in (*folders, *files))
