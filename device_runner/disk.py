"""A full disk, said as such: which folder, how much is free, what to do.

A writer meets it in another disguise: an error of the system, the words of a compiler, or a program that
dies because what it had mapped into memory found no room. None of them is the fault of what was being written.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from device_runner.failures import DiskFull

ERRORS = (errno.ENOSPC, errno.EDQUOT)
NEARLY_BYTES = 1 << 20
"""Least free space; below it, nothing of ours can be written."""
OTHER_DISK = "or set ADRENO_BENCH_CACHE to a folder on another disk"

DISK_FULL = "the disk is full"
"""What the line of each such failure begins with, also where another process told it."""
_MESSAGE = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)


def disk_full(why: BaseException | str, *folders: Path, otherwise: str = OTHER_DISK) -> DiskFull | None:
    """Return the failure if an error, one of its causes, or a program's words mean a full disk; else None.

    `folders` are where was written, besides the folder of temporary files; `otherwise` is what to do but to free space.
    """
    named = _full_file(why)
    if named is None:
        return None
    places = [folder for folder in folders if not named or Path(named).is_relative_to(folder)]
    places += [] if places and named else [Path(named).parent if named else _temporary()]
    return _failure(_fullest(places), str(why), otherwise)


def _full_file(why: BaseException | str) -> str | None:
    """Return the file that found no room, empty if that is not known; None if it was something else that went wrong."""
    if isinstance(why, str):
        return "" if _MESSAGE.search(why) else None
    error: BaseException | None = why
    while error:
        if isinstance(error, OSError) and error.errno in ERRORS:
            return error.filename if isinstance(error.filename, str) else ""
        if _MESSAGE.search(str(error)):
            return ""
        error = error.__cause__ or error.__context__
    return None


def nearly_full(why: str, *folders: Path) -> DiskFull | None:
    """Return the failure if a program ended without a reason and one of its folders has no room; else None."""
    place = _fullest((*folders, _temporary()))
    return _failure(place, why, OTHER_DISK) if _free_bytes(place) < NEARLY_BYTES else None


def _failure(folder: Path, evidence: str, otherwise: str) -> DiskFull:
    if folder == _temporary():
        otherwise = "or set TMPDIR to a folder on another disk"
    hint = f"free some space (`adreno-bench cache --prune` removes what was built and not used lately), {otherwise}"
    stat = _stat_of(folder)
    no_inode = " and no inode" if stat and stat.f_files and not stat.f_favail else ""
    free = f"{_free_bytes(folder) / 1e6:.1f} MB{no_inode} free in {folder}"
    return DiskFull(f"{DISK_FULL}: {free}", hint=hint, evidence=evidence)


def _fullest(folders: Sequence[Path]) -> Path:
    """Return the folder on the fullest disk, the first of those on it. Each disk is asked once, as it changes."""
    disks = {folder: _disk_of(folder) for folder in folders}
    free = {disk: _free_bytes(folder) for folder, disk in disks.items()}
    return min(folders, key=lambda folder: free[disks[folder]])


def _disk_of(folder: Path) -> object:
    """Return what folders on one disk have in common."""
    stat = _stat_of(folder)
    return stat.f_fsid if stat and stat.f_fsid else folder


def _free_bytes(folder: Path) -> int:
    """Free space for this user on the disk of a folder."""
    stat = _stat_of(folder)
    return stat.f_bavail * stat.f_frsize if stat else 0


def _stat_of(folder: Path) -> os.statvfs_result | None:
    """Return the disk of a folder, or of the nearest one above it that is there."""
    for place in (folder, *folder.parents):
        with contextlib.suppress(OSError):
            return os.statvfs(place)
    return None


def _temporary() -> Path:
    """Folder for the temporary files of compilers."""
    try:
        return Path(tempfile.gettempdir())
    except FileNotFoundError:  # no folder for such files has any room
        return Path("/tmp")
