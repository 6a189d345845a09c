"""Being found through a TVM RPC tracker, as TVM's own servers are. Source: tvm/rpc/server.py."""

from __future__ import annotations

import logging
import select
import socket
import time

from device_runner.rpc_server.tracker import Address, Code, Connection

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
