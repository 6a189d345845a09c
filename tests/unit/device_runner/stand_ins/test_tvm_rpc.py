"""What our `tvm_rpc` makes of its command line and of a client's first words, as TVM's own was seen to do."""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import LONG_S

from device_runner.rpc_server import KEY_VARIABLE
from device_runner.rpc_server.handshake import MAGIC, MAX_KEY_BYTES, MISMATCH
from device_runner.stand_ins.tvm_rpc import flags
from device_runner.stand_ins.tvm_rpc.clients import Client, ClientRefusal, ServerError, meet

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(LONG_S)
        yield ours, theirs


def message(magic: int, text: bytes) -> bytes:
    return struct.pack("<ii", magic, len(text)) + text


def test_a_client_is_let_in_by_its_key(ends: Ends) -> None:
    ours, theirs = ends
    theirs.sendall(message(MAGIC, b"client:key -timeout=7 -more=1"))
    assert meet(ours, "127.0.0.1:5", "name", "key") == Client("-timeout=7")
    assert theirs.recv(64) == message(MAGIC, b"server:name")


def test_a_client_with_another_key_is_told(ends: Ends) -> None:
    ours, theirs = ends
    theirs.sendall(message(MAGIC, b"client:another"))
    with pytest.raises(ClientRefusal, match=re.escape("Mismatch key from127.0.0.1:5")):
        meet(ours, "127.0.0.1:5", "name", "key")
    assert theirs.recv(8) == struct.pack("<i", MISMATCH)


def test_a_client_whose_key_is_too_short_is_told_nothing(ends: Ends) -> None:
    ours, theirs = ends
    theirs.sendall(message(MAGIC, b"client:"))
    with pytest.raises(ClientRefusal, match="Wrong client header length"):
        meet(ours, "", "name", "key")
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)


def test_a_silent_client_holds_the_server_up_until_it_speaks_or_leaves(ends: Ends) -> None:
    ours, theirs = ends
    met: list[object] = []

    def serve() -> None:
        try:
            met.append(meet(ours, "", "name", ""))
        except ServerError as error:
            met.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    theirs.shutdown(socket.SHUT_RDWR)
    thread.join(LONG_S)
    assert isinstance(met[0], ServerError)


@given(data=st.binary(max_size=64) | st.binary(max_size=40).map(lambda text: message(MAGIC, text)))
def test_no_client_is_let_in_without_the_key(data: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises((ServerError, ClientRefusal)):
            meet(ours, "", "name", "a key that is not guessed")


def test_a_huge_key_is_not_waited_for(ends: Ends) -> None:
    ours, theirs = ends
    theirs.sendall(struct.pack("<ii", MAGIC, MAX_KEY_BYTES + 1))
    with pytest.raises(ServerError):
        meet(ours, "", "name", "key")


@pytest.mark.parametrize(("options", "timeout_s"), [("", 0), ("-timeout=12", 12), ("-other=1", 0), ("-timeout=0", 0)])
def test_a_session_has_the_limit_that_its_client_asks_for(options: str, timeout_s: int) -> None:
    assert Client(options).timeout_s == timeout_s


@pytest.mark.parametrize("options", ["-timeout=0.5", "-timeout=", "-timeout=-1"])
def test_a_limit_that_is_no_whole_number_is_an_error(options: str) -> None:
    with pytest.raises(ValueError, match="no time limit"):
        _ = Client(options).timeout_s


def test_flags_are_read_as_tvms_server_reads_them() -> None:
    read = flags.parse(["--port=5", "--port=6", "--port-end=0", "--colour=red", "--key", "k", "--silent=no", "--key=x"])
    assert (read.port, read.port_end, read.key, read.silent) == (5, 0, "x", True)
    assert flags.parse(["--key=", "--port="]) == flags.Flags()


def test_the_log_begins_with_the_flags() -> None:
    assert flags.parse(["--key=k", "--tracker=127.0.0.1:9190"]).lines() == [
        "host        = 127.0.0.1",
        "port        = 9090",
        "port_end    = 9099",
        "tracker     = ('127.0.0.1', 9190)",
        "key         = k",
        "custom_addr = ",
        "work_dir    = ",
        "silent      = False",
    ]


@pytest.mark.parametrize(
    ("flag", "says"),
    [
        ("--port=abc", "Wrong port number."),
        ("--port=65536", "Wrong port number."),
        ("--port-end=-1", "Wrong port-end number."),
        ("--host=localhost", "Wrong host address format."),
        ("--tracker=nonsense", "Wrong tracker address format."),
        ("--custom-addr=phone", "Wrong custom address format."),
    ],
)
def test_a_wrong_value_is_named(flag: str, says: str) -> None:
    with pytest.raises(flags.WrongFlag, match=re.escape(says)):
        flags.parse([flag])


def test_a_key_of_the_environment_is_taken_from_there_and_goes_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, "secret")
    assert flags.with_secret_key(flags.Flags(key="shown")).key == "secret"
    assert flags.with_secret_key(flags.Flags(key="shown")).key == "shown"
