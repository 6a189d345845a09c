"""Carries TCP connections through a unix socket, into a sandbox that has a network of its own.

Run as a program inside: `bridge.py SOCKET PORT` accepts on the socket and connects to the port.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 18):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket, connect: Callable[[], socket.socket]) -> None:
    with contextlib.suppress(OSError):  # the listener was closed
        while True:
            left = listener.accept()[0]
            try:
                right = connect()
            except OSError:
                left.close()
                continue
            for ends in ((left, right), (right, left)):
                threading.Thread(target=_copy, args=ends, daemon=True).start()


@contextlib.contextmanager
def bridge(path: Path) -> Iterator[int]:
    """A port of the loopback that leads to the unix socket at `path`."""

    def connect() -> socket.socket:
        # The name of a unix socket has at most 107 bytes; that of a folder's descriptor is always short.
        folder = os.open(path.parent, os.O_PATH)
        try:
            right = socket.socket(socket.AF_UNIX)
            right.connect(f"/proc/self/fd/{folder}/{path.name}")
            return right
        finally:
            os.close(folder)

    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=_serve, args=(listener, connect), daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


if __name__ == "__main__":
    inside = socket.socket(socket.AF_UNIX)
    inside.bind(sys.argv[1])
    inside.listen()
    _serve(inside, lambda: socket.create_connection(("127.0.0.1", int(sys.argv[2]))))
