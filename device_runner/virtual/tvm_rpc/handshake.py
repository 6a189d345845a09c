"""How a client and the server meet: `magic, length, key`, with words in little-endian order.

A client's key is `client:KEY [-timeout=SECONDS]`, the server's answer `server:KEY`. Source: tvm/rpc/base.py, server.py.
"""

from __future__ import annotations

import re
import socket
import struct
from dataclasses import dataclass

MAGIC = 0xFF271
MISMATCH = MAGIC + 2
MAX_KEY_BYTES = 4096
DEADLINE_S = 10.0

_WORD = struct.Struct("<i")
_TIMEOUT = re.compile(r"-timeout=(\d+(?:\.\d+)?)")


class Unwelcome(Exception):
    """The other side is not a client of ours."""


@dataclass(frozen=True)
class Session:
    """What a client asked for."""

    timeout_s: float | None


def greet(connection: socket.socket, key: str, match_key: str) -> Session:
    """Let in a client that names `match_key`. Raises Unwelcome or OSError."""
    connection.settimeout(DEADLINE_S)
    if _word(connection) != MAGIC:
        raise Unwelcome("not a TVM RPC client")
    length = _word(connection)
    if not 0 < length <= MAX_KEY_BYTES:
        raise Unwelcome(f"a key of {length} bytes")
    name, *options = receive(connection, length).decode(errors="replace").split() or [""]
    if name != f"client:{match_key}":
        connection.sendall(_WORD.pack(MISMATCH))
        raise Unwelcome(f"mismatched key {name!r}")
    answer = f"server:{key}".encode()
    connection.sendall(_WORD.pack(MAGIC) + _WORD.pack(len(answer)) + answer)
    connection.settimeout(None)
    timeouts = [float(found[1]) for option in options if (found := _TIMEOUT.fullmatch(option))]
    return Session(next((seconds for seconds in timeouts if seconds > 0), None))


def receive(connection: socket.socket, size: int) -> bytes:
    """Exactly `size` bytes. Raises ConnectionError at an early end."""
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError("closed in the middle of a message")
        data += piece
    return bytes(data)


def _word(connection: socket.socket) -> int:
    word: int = _WORD.unpack(receive(connection, _WORD.size))[0]
    return word
