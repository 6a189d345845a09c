"""Both sides of TVM's handshake as a fleet needs them: a client that names its key, and who reads that."""

from __future__ import annotations

import socket
import struct

from device_runner.deadline import Deadline, receive
from device_runner.rpc_server import handshake

CLIENT = "client:"

_WORD = struct.Struct("<i")


class HandshakeFailure(Exception):
    """The other side is not a client of ours."""


def call(connection: socket.socket, match_key: str, deadline: Deadline) -> None:
    """Act as the client: name a key. Raises HandshakeFailure if it is wrong, TimeoutError at the deadline."""
    name = f"{CLIENT}{match_key}".encode()
    deadline.bound(connection)
    connection.sendall(_WORD.pack(handshake.MAGIC) + _WORD.pack(len(name)) + name)
    if (answer := _read_word(connection, deadline)) != handshake.MAGIC:
        is_old = answer == handshake.MISMATCH
        raise HandshakeFailure("the key is not valid any more" if is_old else "not a TVM RPC server")
    _read_key(connection, deadline)


def read_name(connection: socket.socket) -> tuple[str, list[str]]:
    """Return what a client names, and its options. Raises HandshakeFailure if it is no client of TVM's, or OSError."""
    deadline = Deadline(handshake.DEADLINE_S)
    if _read_word(connection, deadline) != handshake.MAGIC:
        raise HandshakeFailure("not a TVM RPC client")
    name, *options = _read_key(connection, deadline).decode(errors="replace").split() or [""]
    if not name.startswith(CLIENT):
        handshake.refuse(connection)
        raise HandshakeFailure(f"not a client, but {name!r}")
    return name[len(CLIENT) :], options


def _read_key(connection: socket.socket, deadline: Deadline) -> bytes:
    """Receive a length and so many bytes."""
    length = _read_word(connection, deadline)
    if not 0 < length <= handshake.MAX_KEY_BYTES:
        raise HandshakeFailure(f"a key of {length} bytes")
    return receive(connection, length, deadline)


def _read_word(connection: socket.socket, deadline: Deadline) -> int:
    word: int = _WORD.unpack(receive(connection, _WORD.size, deadline))[0]
    return word
