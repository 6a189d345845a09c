"""The process behind `relay.Relay`: it imports nothing but the standard library.

Arguments: the file descriptors of a listening socket, of the stream it leads to, of a control socket, and of a socket
that brings the numbers of signals that come during a call. Control messages are a number of seconds from now after
which to cut (`inf` for never); the end of control cuts at once, so the relay never outlives its owner. The first
message sent back says why the stream ended.
"""

from __future__ import annotations

import contextlib
import math
import select
import signal
import socket
import sys
import threading
import time

from device_runner.private_sockets import is_foreign
from device_runner.session.rpc_replies import Nonsense, Reader, RpcConversation

EXPIRED = b"expired"
NONSENSE = b"nonsense: "
"""Precedes what the device sent that no RPC server of TVM's sends. It was not passed on."""
REMOTE_CLOSED = b"remote closed"
CLIENT_CLOSED = b"client closed"
INTERRUPTED = b"interrupted"
ENDING = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}
"""Signals that ask the owner to end."""
SIGNALS = 64
"""How many are read at once."""

CHUNK_BYTES = 262_144
REASON_BYTES = 256


def main() -> None:
    """Accept one client, pump until something ends it, then wait for control to close."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner handles Ctrl-C, and then cuts
    listener, stream, control, signals = (socket.socket(fileno=int(fd)) for fd in sys.argv[1:])
    client = None
    end = math.inf
    while True:
        waiting = [control, signals] if client else [control, signals, listener]
        timeout = None if end == math.inf else max(0.0, end - time.monotonic())
        ready, _, _ = select.select(waiting, [], [], timeout)
        if not ready:
            _tell(control, EXPIRED)
            _cut(client, stream)
            end = math.inf
        if signals in ready and ENDING.intersection(signals.recv(SIGNALS)):
            _tell(control, INTERRUPTED)
            _cut(client, stream)
        if listener in ready and (client := _own_client(listener)):
            listener.close()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            both = RpcConversation()
            pumps = (client, stream, both.requests, CLIENT_CLOSED), (stream, client, both.replies, REMOTE_CLOSED)
            for pump in pumps:
                threading.Thread(target=_pump, args=(*pump, control), daemon=True).start()
        if control in ready:
            message = _message(control)
            if not message:
                _cut(client, stream)
                return
            end = time.monotonic() + float(message)


def _own_client(listener: socket.socket) -> socket.socket | None:
    """Return the client that connected, unless it is another user of this host."""
    client, _ = listener.accept()
    if is_foreign(client):
        client.close()
        return None
    return client


def _pump(source: socket.socket, sink: socket.socket, reader: Reader, reason: bytes, control: socket.socket) -> None:
    try:
        while data := source.recv(CHUNK_BYTES):
            reader.check(data)
            sink.sendall(data)
    except Nonsense as nonsense:
        reason = NONSENSE + str(nonsense).encode()[: REASON_BYTES - len(NONSENSE)]
    except OSError:
        pass  # the other side is gone; `reason` tells the owner
    _tell(control, reason)
    _cut(source, sink)


def _message(control: socket.socket) -> bytes:
    try:
        return control.recv(64)
    except ConnectionResetError:
        return b""  # the owner closed it without having read what we told


def _tell(control: socket.socket, reason: bytes) -> None:
    with contextlib.suppress(OSError):  # the owner is gone and nobody needs the reason
        control.send(reason)


def _cut(*socks: socket.socket | None) -> None:
    for sock in socks:
        if sock:
            with contextlib.suppress(OSError):  # it was closed already
                sock.shutdown(socket.SHUT_RDWR)
