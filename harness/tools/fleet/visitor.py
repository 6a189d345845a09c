"""Who calls: the name that a client of TVM RPC begins with."""

from __future__ import annotations

import socket

from device_runner.deadline import Deadline, receive
from device_runner.rpc_server.handshake import (
    CLIENT,
    DEADLINE_S,
    MAGIC,
    MAX_KEY_BYTES,
    HandshakeFailure,
    read_word,
    refuse,
)


def read_name(connection: socket.socket) -> tuple[str, list[str]]:
    """Return what a client names, and its options. Raises HandshakeFailure if it is no client of TVM's, or OSError."""
    deadline = Deadline(DEADLINE_S)
    if read_word(connection, deadline) != MAGIC:
        raise HandshakeFailure("not a TVM RPC client")
    length = read_word(connection, deadline)
    if not 0 < length <= MAX_KEY_BYTES:
        raise HandshakeFailure(f"a key of {length} bytes")
    name, *options = receive(connection, length, deadline).decode(errors="replace").split() or [""]
    if not name.startswith(CLIENT):
        refuse(connection)
        raise HandshakeFailure(f"not a client, but {name!r}")
    return name[len(CLIENT) :], options
