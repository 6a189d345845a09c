"""How the server is found through a tracker, and meets a client, for which it waits as long as that takes.

Sources: tvm/rpc/server.py; apache/tvm, apps/cpp_rpc/rpc_server.cc, AcceptConnection.
"""

from __future__ import annotations

import logging
import select
import socket
import struct
import time
from dataclasses import dataclass

from device_runner.rpc_server.handshake import MAGIC, MAX_KEY_BYTES, refuse, welcome
from device_runner.rpc_server.tracker import Address, Code, Connection

LOOPBACK = "127.0.0.1"
_WORD = struct.Struct("<i")
_CLIENT = "client:"
_TIMEOUT = "-timeout="


class ServerError(Exception):
    """What TVM's server logs as an exception: it drops the client and its tracker, and goes on."""


class ClientRefusal(Exception):
    """The client is sent away; the log says why, and as an error if it is `loud`."""

    def __init__(self, text: str, *, loud: bool = False) -> None:
        super().__init__(text)
        self.loud = loud


@dataclass(frozen=True)
class Client:
    """A client that was let in."""

    options: str
    """The first word after its key."""

    @property
    def timeout_s(self) -> int:
        """How long it wants its session to last at most; 0 is no limit. Raises ValueError for what is no number."""
        _, prefix, text = self.options.rpartition(_TIMEOUT)
        if not prefix:
            return 0
        if not text.isdecimal():
            raise ValueError(f"{text!r} is no time limit")
        return int(text)


def meet(connection: socket.socket, address: str, key: str, match_key: str) -> Client:
    """Let in a client that names `match_key`. Raises ServerError or ClientRefusal."""
    if _word(connection) != MAGIC:
        raise ServerError("Client connected is not TVM RPC server")
    expected, length = f"{_CLIENT}{match_key}", _word(connection)
    if 0 <= length < len(expected):
        raise ClientRefusal("Wrong client header length")
    if not 0 <= length <= MAX_KEY_BYTES:
        raise ServerError(f"a key of {length} bytes")
    name, *options = _exactly(connection, length).decode(errors="replace").split() or [""]
    if name != expected:
        refuse(connection)
        raise ClientRefusal(f"Mismatch key from{address}", loud=True)
    welcome(connection, key)
    return Client(options[0] if options else "")


def _word(connection: socket.socket) -> int:
    word: int = _WORD.unpack(_exactly(connection, _WORD.size))[0]
    return word


def _exactly(connection: socket.socket, size: int) -> bytes:
    try:
        data = connection.recv(size, socket.MSG_WAITALL)
    except OSError as error:
        raise ServerError(str(error)) from None
    if len(data) < size:
        raise ServerError(f"the client left after {len(data)} of {size} bytes")
    return data


CONNECT_DEADLINE_S = 10.0
PING_PERIOD_S = 2.0
RETRY_S = 5.0
_UNUSED_PERIODS = 3

log = logging.getLogger("tvm_rpc")


class Tracker:
    """A tracker that offers our sessions to clients; it is looked for again whenever it is gone."""

    def __init__(self, address: Address, key: str, advertised: str | None, listener: socket.socket) -> None:
        self._address = address
        self._key = key
        self._own = (advertised, listener.getsockname()[1])
        self._listener = listener
        self._connection: Connection | None = None

    def wait_for_client(self) -> str:
        """Offer one session and return when somebody connects to the listener, with the key that it must name."""
        while True:
            try:
                self._connection = self._connection or self._connected()
                return self._offer_until_taken(self._connection)
            except (OSError, ValueError) as error:
                log.warning("tracker %s:%d: %s", *self._address, error)
                self.forget()
                time.sleep(RETRY_S)

    def forget(self) -> None:
        """End the connection; the next client is waited for through another one."""
        if self._connection:
            self._connection.close()
            self._connection = None

    def _offer_until_taken(self, tracker: Connection) -> str:
        match_key = tracker.offer(self._key, self._own)
        unused = 0
        while not select.select([self._listener], [], [], PING_PERIOD_S)[0]:
            unused = 0 if match_key in tracker.ask(Code.GET_PENDING_MATCHKEYS) else unused + 1
            if unused > _UNUSED_PERIODS:  # given to a client that never came
                match_key, unused = tracker.offer(self._key, self._own), 0
        return match_key

    def _connected(self) -> Connection:
        connection = Connection(self._address, CONNECT_DEADLINE_S)
        connection.tell(Code.UPDATE_INFO, {"key": f"server:{self._key}", "addr": self._own})
        return connection
