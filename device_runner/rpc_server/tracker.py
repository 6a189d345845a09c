"""A connection to a TVM RPC tracker, with deadlines. Messages are `length, JSON`. Source: tvm/rpc/tracker.py.

`python -m tvm.exec.rpc_tracker` is that tracker. It keeps a queue of free servers for each key, and gives each to
the client that asked first; it forgets what a server offered when its connection ends.
"""

from __future__ import annotations

import json
import secrets
import socket
import struct
from enum import IntEnum
from typing import Any

from device_runner.deadline import Deadline, receive
from device_runner.foreign_json import read_json

MAGIC = 0x2F271
MAX_MESSAGE_BYTES = 1 << 20
ANSWER_TIMEOUT_S = 5.0

_WORD = struct.Struct("<i")

Address = tuple[str, int]


class Code(IntEnum):
    """What a message asks for."""

    SUCCESS = 0
    PUT = 3
    REQUEST = 4
    UPDATE_INFO = 5
    SUMMARY = 6
    GET_PENDING_MATCHKEYS = 7


class Connection:
    """One connection. Raises OSError when it breaks or is too late, ValueError if the other side is no tracker."""

    def __init__(self, address: Address, timeout_s: float) -> None:
        deadline = Deadline(timeout_s)
        self._socket = socket.create_connection(address, timeout_s)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            deadline.bound(self._socket)
            self._socket.sendall(_WORD.pack(MAGIC))
            if _WORD.unpack(receive(self._socket, 4, deadline))[0] != MAGIC:
                raise ValueError("it is no TVM RPC tracker")
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        """End it; what was offered through it is offered no more."""
        self._socket.close()

    def ask(self, code: Code, *arguments: Any, timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
        """Return what the tracker answers."""
        deadline = Deadline(timeout_s)
        send_json(self._socket, [code, *arguments], deadline)
        return receive_json(self._socket, deadline)

    def tell(self, code: Code, *arguments: Any) -> None:
        """Send what the tracker only confirms."""
        answer = self.ask(code, *arguments)
        if answer != Code.SUCCESS:
            raise ValueError(f"it answered {answer!r:.80} to {code.name}")

    def offer(self, key: str, address: tuple[str | None, int]) -> str:
        """Put one server into the queue of `key`; returns what its client must name."""
        match_key = f"{key}:{secrets.token_hex(16)}"
        self.tell(Code.PUT, key, (address[1], match_key), address[0])
        return match_key


def send_json(sock: socket.socket, value: Any, deadline: Deadline) -> None:
    """Send one message."""
    text = json.dumps(value).encode()
    deadline.bound(sock)
    sock.sendall(_WORD.pack(len(text)) + text)


def receive_json(sock: socket.socket, deadline: Deadline) -> Any:
    """Receive one message of at most `MAX_MESSAGE_BYTES`."""
    length = _WORD.unpack(receive(sock, 4, deadline))[0]
    if not 0 < length <= MAX_MESSAGE_BYTES:
        raise ValueError(f"it sent a message of {length} bytes")
    return read_json(receive(sock, length, deadline))
