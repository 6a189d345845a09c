"""Being found through a TVM RPC tracker: messages are `length, JSON`. Source: tvm/rpc/tracker.py."""

from __future__ import annotations

import json
import random
import select
import socket
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from device_runner.virtual.tvm_rpc.handshake import receive

MAGIC = 0x2F271
CONNECT_DEADLINE_S = 10.0
PING_PERIOD_S = 2.0
_UNUSED_PERIODS = 3
_MAX_MESSAGE_BYTES = 1 << 20


class _Code(IntEnum):
    SUCCESS = 0
    PUT = 3
    UPDATE_INFO = 5
    GET_PENDING_MATCHKEYS = 7


@dataclass(frozen=True)
class Address:
    """Where the tracker is, and under which key and address it should name us."""

    host: str
    port: int
    key: str
    advertised: str | None


class Tracker:
    """One connection to a tracker. All methods raise OSError or ValueError when it is gone or talks nonsense."""

    def __init__(self, address: Address, port: int) -> None:
        self._key = address.key
        self._advertised = address.advertised
        self._port = port
        self._socket = socket.create_connection((address.host, address.port), CONNECT_DEADLINE_S)
        self._socket.sendall(struct.pack("<i", MAGIC))
        if struct.unpack("<i", receive(self._socket, 4))[0] != MAGIC:
            raise ValueError(f"{address.host}:{address.port} is not a TVM RPC tracker")
        self._ask(_Code.UPDATE_INFO, {"key": f"server:{self._key}", "addr": (self._advertised, port)})

    def close(self) -> None:
        """Leave; the tracker forgets us."""
        self._socket.close()

    def offer(self) -> str:
        """Offer one session; whoever is given it names the returned key."""
        match_key = f"{self._key}:{random.random()}"
        self._ask(_Code.PUT, self._key, (self._port, match_key), self._advertised)
        return match_key

    def wait_for_client(self, listener: socket.socket, match_key: str) -> str:
        """Return when somebody connects, with the key to expect: a new one if the last was taken but never used."""
        unused = 0
        while not select.select([listener], [], [], PING_PERIOD_S)[0]:
            pending = self._ask(_Code.GET_PENDING_MATCHKEYS)
            unused = 0 if match_key in pending else unused + 1
            if unused > _UNUSED_PERIODS:
                match_key, unused = self.offer(), 0
        return match_key

    def _ask(self, code: _Code, *arguments: Any) -> Any:
        message = json.dumps([code, *arguments]).encode()
        self._socket.sendall(struct.pack("<i", len(message)) + message)
        length = struct.unpack("<i", receive(self._socket, 4))[0]
        if not 0 < length <= _MAX_MESSAGE_BYTES:
            raise ValueError(f"a message of {length} bytes")
        answer = json.loads(receive(self._socket, length))
        if code is not _Code.GET_PENDING_MATCHKEYS and answer != _Code.SUCCESS:
            raise ValueError(f"the tracker answered {answer!r} to {code.name}")
        return answer
