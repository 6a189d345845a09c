"""The phone's clock, which can be wrong; the host's cannot be changed.

So the phone tells the time that its clock shows (`date`, `sync:`), and its files, whose times are the host's, are made
older when its clock jumps forward: what is asked for by age is found as on a phone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

JUMP_FILE = "data/misc/clock_jump_s"
"""For `date`: how far, in whole seconds, the phone's clock is ahead."""


def jump(root: Path, seconds: int) -> None:
    """Set the phone's clock so far ahead of the host's."""
    file = root / JUMP_FILE
    ahead = seconds - (int(file.read_text()) if file.exists() else 0)
    if not ahead:
        return
    for path in _all_below(root / "data"):
        found = path.lstat()
        times = (found.st_atime - ahead, found.st_mtime - ahead)
        os.utime(path, times, follow_symlinks=False)
    file.write_text(f"{seconds}\n")


def _all_below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent) / name for name in (*folders, *files))
