"""How a client and the server meet: `magic, length, key`, with words in little-endian order.

A client's key is `client:KEY [-timeout=SECONDS]`, the server's answer `server:KEY`. Source: tvm/rpc/base.py, server.py.
"""

from __future__ import annotations

import socket
import struct

from device_runner.deadline import Deadline, receive

MAGIC = 0xFF271
MISMATCH = MAGIC + 2
MAX_KEY_BYTES = 4096
DEADLINE_S = 10.0
"""Deadline for a client's key, and for the answer."""

_WORD = struct.Struct("<i")
CLIENT = "client:"


class HandshakeFailure(Exception):
    """The other side is not a client of ours."""


def welcome(connection: socket.socket, key: str) -> None:
    """Let a client in."""
    answer = f"server:{key}".encode()
    connection.sendall(_WORD.pack(MAGIC) + _WORD.pack(len(answer)) + answer)
    connection.settimeout(None)


def refuse(connection: socket.socket) -> None:
    """Tell a client that its key is not the right one."""
    connection.sendall(_WORD.pack(MISMATCH))


def call(connection: socket.socket, match_key: str, deadline: Deadline) -> None:
    """Act as the client: name a key. Raises HandshakeFailure if it is wrong, TimeoutError at the deadline."""
    name = f"{CLIENT}{match_key}".encode()
    deadline.bound(connection)
    connection.sendall(_WORD.pack(MAGIC) + _WORD.pack(len(name)) + name)
    if (answer := read_word(connection, deadline)) != MAGIC:
        raise HandshakeFailure("the key is not valid any more" if answer == MISMATCH else "not a TVM RPC server")
    length = read_word(connection, deadline)
    if not 0 < length <= MAX_KEY_BYTES:
        raise HandshakeFailure(f"a key of {length} bytes")
    receive(connection, length, deadline)


def read_word(connection: socket.socket, deadline: Deadline) -> int:
    """Receive a word. Raises OSError."""
    word: int = _WORD.unpack(receive(connection, _WORD.size, deadline))[0]
    return word
