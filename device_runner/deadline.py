"""One point in time that a whole operation must respect, however many steps it takes."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator


class Deadline:
    """A point in monotonic time, `seconds` from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def remaining_s(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self._end - time.monotonic())

    def bound(self, sock: socket.socket) -> None:
        """Let the next operation on a socket take no longer than what is left. Raises TimeoutError if nothing is."""
        remaining = self.remaining_s
        if not remaining:
            raise TimeoutError
        sock.settimeout(remaining)

    def attempts(self, every_s: float) -> Iterator[None]:
        """Yield at least once, then again after each pause of `every_s`, until the time is over."""
        yield
        while remaining := self.remaining_s:
            time.sleep(min(every_s, remaining))
            if self.remaining_s:
                yield


def receive(sock: socket.socket, size: int, deadline: Deadline | None) -> bytes:
    """Exactly `size` bytes. Raises ConnectionError if the stream ends first, TimeoutError at the deadline."""
    data = bytearray()
    while len(data) < size:
        if deadline:
            deadline.bound(sock)
        piece = sock.recv(size - len(data))
        if not piece:
            raise ConnectionError("the stream ended early")
        data += piece
    return bytes(data)
