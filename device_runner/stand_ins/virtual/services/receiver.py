"""What a SEND becomes: a file, a symbolic link, or nothing at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

_MAX_LINK_BYTES = 4096


class NotCreated(OSError):
    """A file cannot be created."""


class NoFolder(OSError):
    """The folder of a file cannot be made."""


@contextlib.contextmanager
def open_target(path: str, mode: int) -> Iterator[Target]:
    """Yield a target for `mode` (file type and permissions). What is unfinished is removed again.

    Raises NoFolder or NotCreated, and afterwards OSError.
    """
    with _as(NoFolder):
        _make_room(path, mode)
    with _as(NotCreated):
        target: Target = _Link(path) if stat.S_ISLNK(mode) else _PushedFile(path, mode)
    try:
        yield target
    except BaseException:
        with contextlib.suppress(OSError):
            target.abandon()
        raise
    finally:
        target.close()


@contextlib.contextmanager
def _as(kind: type[OSError]) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        code = error.errno if isinstance(error, OSError) else None
        raise kind(code or errno.EINVAL, os.strerror(code or errno.EINVAL)) from error


def nowhere() -> AbstractContextManager[Target]:
    """Return a target for a dry run."""
    return contextlib.nullcontext(_Nowhere())


def _make_room(path: str, mode: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        old = os.lstat(path).st_mode
        # A link to a folder stays, as /sdcard does; a file pushed to it is written through it.
        if stat.S_ISREG(old) or (stat.S_ISLNK(old) and (stat.S_ISLNK(mode) or not Path(path).is_dir())):
            Path(path).unlink()
    Path(path).parent.mkdir(mode=0o775, parents=True, exist_ok=True)


class _PushedFile:
    def __init__(self, path: str, mode: int) -> None:
        self._path = path
        # Owner's permissions go to group and others: 0755 becomes 0777, as on a phone.
        bits = mode & 0o777
        bits |= (bits >> 3) & 0o070
        bits |= (bits >> 3) & 0o007
        # Without O_NONBLOCK a pipe that nobody reads would stop the daemon.
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, bits)
        if stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.fchmod(self._fd, bits)

    def write(self, piece: memoryview) -> None:
        while piece:
            piece = piece[os.write(self._fd, piece) :]

    def finish(self, mtime_s: int) -> None:
        os.utime(self._fd, (mtime_s, mtime_s))

    def abandon(self) -> None:
        if stat.S_ISREG(os.fstat(self._fd).st_mode):
            Path(self._path).unlink()

    def close(self) -> None:
        os.close(self._fd)


class _Link:
    def __init__(self, path: str) -> None:
        self._path = path
        self._target = bytearray()

    def write(self, piece: memoryview) -> None:
        self._target += piece
        if len(self._target) > _MAX_LINK_BYTES:
            raise OSError("the link's target is too long")

    def finish(self, mtime_s: int) -> None:
        link = os.fsdecode(bytes(self._target).rstrip(b"\0"))
        os.symlink(link, self._path)  # noqa: PTH211 - pathlib would tidy up the target
        os.utime(self._path, (mtime_s, mtime_s), follow_symlinks=False)

    def abandon(self) -> None:
        """Nothing was made yet."""

    def close(self) -> None:
        """Nothing is open."""


class _Nowhere:
    def write(self, piece: memoryview) -> None:
        """Drop the data."""

    def finish(self, mtime_s: int) -> None:
        """There is nothing to finish."""

    def abandon(self) -> None:
        """Nothing was made."""

    def close(self) -> None:
        """Nothing is open."""


Target = _PushedFile | _Link | _Nowhere
"""Takes the data of one SEND, piece by piece, until it is finished or abandoned."""
