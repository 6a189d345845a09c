"""Unix sockets in folders of any length: the address of one has room for 107 bytes, and tests and caches lie deeper."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PRIVATE = 0o700
"""Mode of a folder that no other user of the host can enter."""


def listen_private(file: Path, backlog: int = 128) -> socket.socket:
    """Listen on a socket that no other user of the host can reach. One that is there already is replaced."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.parent.chmod(PRIVATE)
    file.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    try:
        with _short(file) as name:
            listener.bind(name)
        listener.listen(backlog)
    except BaseException:
        listener.close()
        raise
    return listener


def connect(file: Path, timeout_s: float) -> socket.socket:
    """Return a connection to it. Raises ConnectionRefusedError if nobody listens there, OSError."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.settimeout(timeout_s)
        with _short(file) as name:
            sock.connect(name)
    except FileNotFoundError as error:
        sock.close()
        raise ConnectionRefusedError(f"there is no {file}") from error
    except BaseException:
        sock.close()
        raise
    return sock


@contextmanager
def _short(file: Path) -> Iterator[str]:
    """Yield the path of a file by way of its open folder."""
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{file.name}"
    finally:
        os.close(folder)
