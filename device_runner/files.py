"""Writing files whole, adding whole lines to them, and telling files and their names from what only looks like one.

And folders for temporary files, without those that killed processes left.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SCRATCH_SUFFIX = ".new"
"""Ending of the hidden file that is being written; an old one is left over from a killed process."""


_OTHERS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def what_else(path: Path) -> str:
    """Name what is there instead of a file, such as `a FIFO`, which blocks its readers. Empty for a file or nothing."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return ""
    return next((name for is_it, name in _OTHERS if is_it(mode)), "")


def is_name(text: str) -> bool:
    """Return whether a text that may come from others can be part of a file name."""
    return bool(re.fullmatch(r"\w[\w.-]{0,199}", text))


def require_name(text: str) -> str:
    """Return a text that may come from others if it can be part of a file name. Raises ValueError if it cannot."""
    if not is_name(text):
        raise ValueError(f"{text[:80]!r} cannot be part of a file name")
    return text


def write_whole(file: Path, content: str | bytes) -> Path:
    """Write a file, and the folders above it, in one step: readers see the old content or the new, and nothing between.

    Of several who write it at once the last one wins. Text is written as UTF-8. Returns `file`. Raises OSError, and
    leaves what was there before as it was.
    """
    if other := what_else(file):  # root would put a file in the place of /dev/stdout
        raise FileExistsError(errno.EEXIST, f"This is {other}, not a file", str(file))
    file.parent.mkdir(parents=True, exist_ok=True)
    # Beside the file, because a rename does not lead to another file system; hidden, so that no pattern finds it.
    scratch = file.with_name(f".{secrets.token_hex(8)}{SCRATCH_SUFFIX}")
    try:
        with scratch.open("xb") as out:
            out.write(content.encode() if isinstance(content, str) else content)
        scratch.replace(file)
    except BaseException as error:
        with suppress(OSError):
            scratch.unlink()
        if isinstance(error, OSError):
            error.filename, error.filename2 = str(file), None  # the name that a person gave
        raise
    return file


def require_writable(path: Path) -> None:
    """Raise OSError if a file cannot be written here, or not into this folder; nothing is made."""
    if path.is_file():
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))
    elif path.is_dir() or not path.exists():
        folder = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.exists())
        tempfile.TemporaryFile(dir=folder).close()


def append_lines(file: Path, lines: bytes, *, durable: bool = False) -> None:
    """Add lines to a file, and make the folders above it; if the last line was torn by a kill, after a newline.

    With `durable` they are on the disk when this returns. Raises OSError.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        end = os.fstat(handle).st_size
        rest = memoryview((b"\n" if end and os.pread(handle, 1, end - 1) != b"\n" else b"") + lines)
        while rest:
            rest = rest[os.write(handle, rest) :]
        if durable:
            os.fsync(handle)
    finally:
        os.close(handle)


SCRATCH_PREFIX = "adreno-bench-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a folder, and remove it in the end. Those of ours whose processes were killed are removed first.

    A folder is in use as long as this process or one that it forked lives. Raises OSError.
    """
    _remove_abandoned()
    folder, lock = _locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked_folder() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=SCRATCH_PREFIX))
        with suppress(FileNotFoundError):  # another process took it for abandoned
            lock = os.open(folder, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH_PREFIX}*"):
        with suppress(OSError):  # somebody else's, or in use, or gone
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.getuid():
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
