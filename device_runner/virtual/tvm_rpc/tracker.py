"""Being found through a TVM RPC tracker: messages are `length, JSON`. Source: tvm/rpc/tracker.py."""

from __future__ import annotations

import json
import logging
import random
import select
import socket
import struct
import time
from enum import IntEnum
from typing import Any

from device_runner.virtual.tvm_rpc.handshake import receive

MAGIC = 0x2F271
CONNECT_DEADLINE_S = 10.0
PING_PERIOD_S = 2.0
RETRY_S = 5.0
_UNUSED_PERIODS = 3
_MAX_MESSAGE_BYTES = 1 << 20

log = logging.getLogger("tvm_rpc")


class _Code(IntEnum):
    SUCCESS = 0
    PUT = 3
    UPDATE_INFO = 5
    GET_PENDING_MATCHKEYS = 7


class Tracker:
    """A tracker that offers our sessions to clients; it is looked for again whenever it is gone."""

    def __init__(self, address: tuple[str, int], key: str, advertised: str | None, listener: socket.socket) -> None:
        self._address = address
        self._key = key
        self._advertised = advertised
        self._listener = listener
        self._socket: socket.socket | None = None

    def wait_for_client(self) -> str:
        """Offer one session and return when somebody connects to the listener, with the key that it must name."""
        while True:
            try:
                return self._offer_until_taken()
            except (OSError, ValueError) as error:
                log.warning("tracker %s:%d: %s", *self._address, error)
                if self._socket:
                    self._socket.close()
                    self._socket = None
                time.sleep(RETRY_S)

    def _offer_until_taken(self) -> str:
        if not self._socket:
            self._connect()
        match_key = self._offer()
        unused = 0
        while not select.select([self._listener], [], [], PING_PERIOD_S)[0]:
            pending = self._ask(_Code.GET_PENDING_MATCHKEYS)
            unused = 0 if match_key in pending else unused + 1
            if unused > _UNUSED_PERIODS:  # given to a client that never came
                match_key, unused = self._offer(), 0
        return match_key

    def _connect(self) -> None:
        self._socket = socket.create_connection(self._address, CONNECT_DEADLINE_S)
        self._socket.sendall(struct.pack("<i", MAGIC))
        if struct.unpack("<i", receive(self._socket, 4))[0] != MAGIC:
            raise ValueError("not a TVM RPC tracker")
        port = self._listener.getsockname()[1]
        self._ask(_Code.UPDATE_INFO, {"key": f"server:{self._key}", "addr": (self._advertised, port)})

    def _offer(self) -> str:
        match_key = f"{self._key}:{random.random()}"
        self._ask(_Code.PUT, self._key, (self._listener.getsockname()[1], match_key), self._advertised)
        return match_key

    def _ask(self, code: _Code, *arguments: Any) -> Any:
        assert self._socket
        message = json.dumps([code, *arguments]).encode()
        self._socket.sendall(struct.pack("<i", len(message)) + message)
        length = struct.unpack("<i", receive(self._socket, 4))[0]
        if not 0 < length <= _MAX_MESSAGE_BYTES:
            raise ValueError(f"a message of {length} bytes")
        answer = json.loads(receive(self._socket, length))
        if code is not _Code.GET_PENDING_MATCHKEYS and answer != _Code.SUCCESS:
            raise ValueError(f"the tracker answered {answer!r} to {code.name}")
        return answer
