"""Whether somebody holds a file, found out without locking it.

Whoever takes a lock in order to see whether it is free keeps others from it for that moment. The kernel tells of a lock
of an open file description without that (fcntl(2), F_OFD_GETLK), and drops it with the process that has it, however
that ends. Ours excludes nobody: it only shows that its owner holds the real lock.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FLOCK = "hhqqi"
"""`struct flock`: type, whence, start, length (0 is all), process."""


@contextmanager
def held(file: Path) -> Iterator[None]:
    """Show others that we hold `file`, which exists, until the context ends. Only one may do so at a time."""
    fd = os.open(file, os.O_RDWR)
    try:
        with suppress(OSError, AttributeError):  # without such locks `is_held` cannot tell
            _ask(fd, fcntl.F_OFD_SETLK, fcntl.F_WRLCK)
        yield
    finally:
        os.close(fd)


def is_held(file: Path) -> bool | None:
    """Whether somebody holds `file`, be it this process; None if this system cannot tell."""
    try:
        fd = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return _ask(fd, fcntl.F_OFD_GETLK, fcntl.F_RDLCK) != fcntl.F_UNLCK
    except (OSError, AttributeError):
        return None
    finally:
        os.close(fd)


def _ask(fd: int, command: int, kind: int) -> int:
    """The kind of lock in what the kernel answers."""
    answer = fcntl.fcntl(fd, command, struct.pack(_FLOCK, kind, os.SEEK_SET, 0, 0, 0))
    found: int = struct.unpack(_FLOCK, answer)[0]
    return found
