"""How a client and the server meet: `magic, length, key`, with words in little-endian order.

A client's key is `client:KEY [-timeout=SECONDS]`, the server's answer `server:KEY`. Source: tvm/rpc/base.py, server.py.
"""

from __future__ import annotations

import socket
import struct

MAGIC = 0xFF271
MISMATCH = MAGIC + 2
MAX_KEY_BYTES = 4096
DEADLINE_S = 10.0
"""Deadline for a client's key, and for the answer."""

_WORD = struct.Struct("<i")


def welcome(connection: socket.socket, key: str) -> None:
    """Let a client in."""
    answer = f"server:{key}".encode()
    connection.sendall(_WORD.pack(MAGIC) + _WORD.pack(len(answer)) + answer)
    connection.settimeout(None)


def refuse(connection: socket.socket) -> None:
    """Tell a client that its key is not the right one."""
    connection.sendall(_WORD.pack(MISMATCH))
