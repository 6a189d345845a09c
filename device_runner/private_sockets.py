"""Sockets that nobody but our own user may reach: whose a connection is, and Unix sockets in folders of any length.

The address of a Unix socket has room for 107 bytes, and tests and caches lie deeper.
Only the standard library is imported here, because the relay's process imports nothing else.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TABLE = Path("/proc/net/tcp")
"""The kernel's IPv4 sockets, with the user of each (Linux, proc(5))."""
ESTABLISHED = "01"
ATTEMPTS = 3
"""The kernel may leave out a row of a table that changes while it is read."""


def is_foreign(connection: socket.socket) -> bool:
    """Return whether anybody but our user or root holds the other end of a connection that we accepted on 127.0.0.1.

    TVM's RPC and adb run whatever their client asks for, and every user of a host can connect to its loopback. A
    client is ours only while the kernel lists both ends as open: a socket whose holder is gone has no user any more.
    Where there is no such table (another system than Linux) nobody is foreign, and the key alone protects.
    """
    try:
        return not any(_is_listed(connection) for _ in range(ATTEMPTS))
    except FileNotFoundError:
        return False
    except OSError:  # it was closed meanwhile
        return True


def _is_listed(connection: socket.socket) -> bool:
    ours, theirs = _hexadecimal(connection.getsockname()), _hexadecimal(connection.getpeername())
    inode, owner = "", ""
    for line in TABLE.read_text(encoding="ascii").splitlines()[1:]:
        row = line.split()
        if row[1:4] == [ours, theirs, ESTABLISHED]:
            inode = row[9]
        elif row[1:4] == [theirs, ours, ESTABLISHED]:
            owner = row[7]
    return inode == str(os.fstat(connection.fileno()).st_ino) and owner in {"0", str(os.getuid())}


def _hexadecimal(address: tuple[str, int]) -> str:
    """Return an IPv4 address and port as the table has them."""
    (word,) = struct.unpack("=I", socket.inet_aton(address[0]))
    return f"{word:08X}:{address[1]:04X}"


def connect(file: Path, timeout_s: float) -> socket.socket:
    """Connect to the socket of a file. Raises ConnectionRefusedError if nobody listens there, OSError."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.settimeout(timeout_s)
        with short_path(file) as name:
            sock.connect(name)
    except FileNotFoundError as error:
        sock.close()
        raise ConnectionRefusedError(f"there is no {file}") from error
    except BaseException:
        sock.close()
        raise
    return sock


@contextmanager
def short_path(file: Path) -> Iterator[str]:
    """Yield the path of a file by way of its open folder."""
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{file.name}"
    finally:
        os.close(folder)
