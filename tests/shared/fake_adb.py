"""The host side of adb in a thread: a test says what each service of its device does with its stream."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

Service = Callable[[socket.socket, str], None]
"""Gets the accepted stream and what follows the service's name."""

SERIAL = "fake-1"
STDOUT, STDERR, EXIT = 1, 2, 3


class Fail(Exception):
    """Raised by a service to decline a stream with this text."""


class FakeAdbServer:
    """Serves one device. `requests` keeps every service that was asked for, in order."""

    def __init__(self, services: Mapping[str, Service], *, refusal: str = "") -> None:
        self._services = services
        self._refusal = refusal
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.requests: list[str] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                threading.Thread(target=self._converse, args=(sock,), daemon=True).start()

    def _converse(self, sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError, EOFError):
            transport = _request(sock)
            if self._refusal or transport != f"host:transport:{SERIAL}":
                _fail(sock, self._refusal or f"device '{transport}' not found")
                return
            sock.sendall(b"OKAY")
            request = _request(sock)
            self.requests.append(request)
            name, _, argument = request.partition(":")
            if name not in self._services:
                _fail(sock, "closed")
                return
            sock.sendall(b"OKAY")
            self._services[name](sock, argument)


@contextlib.contextmanager
def fake_adb(services: Mapping[str, Service], *, refusal: str = "") -> Iterator[FakeAdbServer]:
    server = FakeAdbServer(services, refusal=refusal)
    try:
        yield server
    finally:
        server.close()


def packet(kind: int, data: bytes) -> bytes:
    return struct.pack("<BI", kind, len(data)) + data


def run_locally(sock: socket.socket, command: str) -> None:
    """Shell v2 that runs the command on this host."""
    done = subprocess.run(["sh", "-c", command], capture_output=True, check=False, stdin=subprocess.DEVNULL)
    sock.sendall(packet(STDOUT, done.stdout) + packet(STDERR, done.stderr) + packet(EXIT, bytes([done.returncode])))


def store_locally(sock: socket.socket, _argument: str) -> None:
    """The sync service, SEND only, writing to this host's files."""
    path, data = receive_send(sock)
    path.write_bytes(data)
    sock.sendall(b"OKAY" + struct.pack("<I", 0))


def receive_send(sock: socket.socket) -> tuple[Path, bytes]:
    """A whole SEND conversation but for the answer: where to, and what."""
    kind, size = struct.unpack("<4sI", read(sock, 8))
    assert kind == b"SEND"
    path = read(sock, size).decode().rpartition(",")[0]
    data = bytearray()
    while True:
        kind, size = struct.unpack("<4sI", read(sock, 8))
        if kind == b"DONE":
            return Path(path), bytes(data)
        assert kind == b"DATA"
        assert size <= 65_536
        data += read(sock, size)


def read(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def _request(sock: socket.socket) -> str:
    return read(sock, int(read(sock, 4), 16)).decode()


def _fail(sock: socket.socket, text: str) -> None:
    sock.sendall(b"FAIL%04x" % len(text) + text.encode())
