"""How a client and a server meet: whoever is slow, or nobody of ours, is refused in time."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from waiting import LONG_S

from device_runner.deadline import Deadline
from device_runner.rpc_server import handshake
from harness.tools.fleet.greeting import HandshakeFailure, call, read_name


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@contextmanager
def trickling(sock: socket.socket, data: bytes, every_s: float) -> Iterator[None]:
    """The other side sends one byte after the other, none of them late."""
    stop = threading.Event()

    def send() -> None:
        for byte in data:
            if stop.wait(every_s):
                return
            sock.sendall(bytes([byte]))

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(LONG_S)


def message(magic: int, text: bytes) -> bytes:
    return struct.pack("<ii", magic, len(text)) + text


def test_a_client_names_its_key(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    theirs.sendall(message(handshake.MAGIC, b"client:key -timeout=7"))
    assert read_name(ours) == ("key", ["-timeout=7"])


@pytest.mark.parametrize("length", [-1, 0, handshake.MAX_KEY_BYTES + 1])
def test_a_key_of_a_length_that_no_key_has_is_refused(ends: tuple[socket.socket, socket.socket], length: int) -> None:
    ours, theirs = ends
    theirs.sendall(struct.pack("<ii", handshake.MAGIC, length))
    with pytest.raises(HandshakeFailure, match=f"a key of {length} bytes"):
        read_name(ours)


def test_a_client_that_is_refused_is_told(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    handshake.refuse(ours)
    with pytest.raises(HandshakeFailure, match="not valid any more"):
        call(theirs, "key", Deadline(LONG_S))


def test_a_client_that_says_it_byte_by_byte_is_too_late_all_the_same(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server serves nobody else meanwhile."""
    ours, theirs = ends
    monkeypatch.setattr(handshake, "DEADLINE_S", 0.3)
    began = time.monotonic()
    with trickling(theirs, message(handshake.MAGIC, b"client:" + b"k" * 300), 0.1), pytest.raises(TimeoutError):
        read_name(ours)
    assert time.monotonic() - began < LONG_S


def test_a_server_that_answers_byte_by_byte_is_too_late_all_the_same(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    ours, theirs = ends
    answer = message(handshake.MAGIC, b"server:" + b"k" * 300)
    with trickling(theirs, answer, 0.1), pytest.raises(TimeoutError):
        call(ours, "key", Deadline(0.3))
