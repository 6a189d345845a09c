from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from pathlib import Path
from unittest import mock

import pytest
from fake_adb import EXIT, SERIAL, STDERR, STDOUT, fake_adb, packet, read, run_locally
from hypothesis import given
from hypothesis import strategies as st

from device_runner.failures import DeviceLost, RigFailure
from device_runner.transport.adb import Adb


def test_a_shell_keeps_output_errors_and_exit_code_apart() -> None:
    with fake_adb({"shell,v2,raw": run_locally}) as server:
        answer = Adb(SERIAL, server.port).shell(["sh", "-c", "echo out; echo err >&2; exit 5"], timeout_s=60)
    assert (answer.code, answer.stdout, answer.stderr) == (5, "out\n", "err\n")


@pytest.mark.parametrize("name", ["a; rm -rf /", "$(id)", "`id`", "it's", 'a "b"', "-n", "*", "a\nb", "é", "\\"])
def test_an_argument_reaches_the_device_as_it_is(name: str) -> None:
    with fake_adb({"shell,v2,raw": run_locally}) as server:
        answer = Adb(SERIAL, server.port).shell(["printf", "%s", name], timeout_s=60)
    assert answer.stdout == name


def test_a_nul_in_a_command_is_a_mistake_of_ours() -> None:
    with fake_adb({"shell,v2,raw": run_locally}) as server, pytest.raises(ValueError, match="NUL"):
        Adb(SERIAL, server.port).shell(["echo", "a\0b"], timeout_s=60)


def test_packets_may_arrive_in_pieces() -> None:
    def dribble(sock: socket.socket, _command: str) -> None:
        for byte in packet(STDOUT, b"abc") + packet(STDERR, b"") + packet(STDOUT, b"d") + packet(EXIT, b"\0"):
            sock.sendall(bytes([byte]))

    with fake_adb({"shell,v2,raw": dribble}) as server:
        assert Adb(SERIAL, server.port).shell(["x"], timeout_s=60).stdout == "abcd"


def test_the_deadline_is_of_the_whole_call_however_busy_the_device_talks() -> None:
    def chatter(sock: socket.socket, _command: str) -> None:
        while True:
            sock.sendall(packet(STDOUT, b"still here\n"))
            time.sleep(0.01)

    with (
        fake_adb({"shell,v2,raw": chatter}) as server,
        pytest.raises(DeviceLost, match=r"fake-1 .* 0\.1 s: chat 'a b'"),
    ):
        Adb(SERIAL, server.port).shell(["chat", "a b"], timeout_s=0.1)


def test_a_script_goes_by_its_name_in_messages() -> None:
    with fake_adb({}) as server, pytest.raises(DeviceLost, match=r"closed it: compare a 'b c': "):
        Adb(SERIAL, server.port).shell(["sh", "-c", "many\nlines", "compare", "a", "b c"], timeout_s=60)


def test_a_server_that_accepts_and_says_nothing_is_bounded_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute, pytest.raises(DeviceLost, match="did not answer"):
        Adb(SERIAL, mute.getsockname()[1]).shell(["x"], timeout_s=0.1)


@pytest.mark.parametrize(
    ("refusal", "hint"),
    [
        ("device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set", "allow USB debugging"),
        ("device offline", "plug it in again"),
        ("device 'fake-1' not found", "adb devices"),
    ],
)
def test_adbs_word_on_a_device_comes_with_what_to_do(refusal: str, hint: str) -> None:
    with fake_adb({}, refusal=refusal) as server, pytest.raises(DeviceLost) as caught:
        Adb(SERIAL, server.port).shell(["x"], timeout_s=60)
    assert SERIAL in caught.value.message
    assert hint in caught.value.hint


def test_no_adb_server_is_the_rigs_fault() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(RigFailure, match=f"no adb server answers on port {port}: start it with `adb start-server`"):
        Adb(SERIAL, port).shell(["x"], timeout_s=60)


def test_without_the_virtual_devices_own_server_it_is_to_be_run_again(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as ended:
        ended.bind(str(tmp_path / "adb"))
    with pytest.raises(RigFailure, match=r"no adb server answers on /.*: run it again"):
        Adb(SERIAL, tmp_path / "adb").shell(["x"], timeout_s=60)


def test_a_stream_that_ends_before_the_exit_code_is_a_lost_device() -> None:
    def vanish(sock: socket.socket, _command: str) -> None:
        sock.sendall(packet(STDOUT, b"half")[:-2])

    with fake_adb({"shell,v2,raw": vanish}) as server, pytest.raises(DeviceLost, match="broke"):
        Adb(SERIAL, server.port).shell(["x"], timeout_s=60)


def test_a_device_that_closes_a_stream_before_it_opens_broke_the_connection() -> None:
    with fake_adb({}) as server, pytest.raises(DeviceLost, match=r"broke: the device closed it: read: restart"):
        Adb(SERIAL, server.port).shell(["read"], timeout_s=60)


def test_nonsense_from_the_server_is_a_lost_device() -> None:
    with socket.create_server(("127.0.0.1", 0)) as odd:

        def answer() -> None:
            sock, _ = odd.accept()
            with sock:
                sock.sendall(b"HTTP/1.1 400 Bad Request\r\n")
                sock.recv(1024)

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(DeviceLost, match="HTTP"):
            Adb(SERIAL, odd.getsockname()[1]).shell(["x"], timeout_s=60)


@given(answer=st.binary(max_size=40), well_begun=st.booleans())
def test_whatever_a_server_sends_is_an_answer_or_a_lost_device(answer: bytes, well_begun: bool) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.sendall((b"OKAYOKAY" if well_begun else b"") + answer)
        theirs.shutdown(socket.SHUT_WR)
        with mock.patch.object(Adb, "_connect", return_value=ours), contextlib.suppress(DeviceLost):
            assert Adb(SERIAL, 1).shell(["x"], timeout_s=60).code in range(256)


@pytest.mark.parametrize("claim", [struct.pack("<BI", STDOUT, 1 << 31), packet(EXIT, b""), packet(EXIT, b"ab")])
def test_a_packet_that_adbd_would_not_send_is_a_lost_device(claim: bytes) -> None:
    with (
        fake_adb({"shell,v2,raw": lambda sock, _: sock.sendall(claim)}) as server,
        pytest.raises(DeviceLost, match="a packet of"),
    ):
        Adb(SERIAL, server.port).shell(["x"], timeout_s=60)


def test_a_port_where_nothing_listens_is_told_apart_from_a_lost_device() -> None:
    with fake_adb({}) as server, pytest.raises(ConnectionRefusedError, match="port 9090"):
        Adb(SERIAL, server.port).dial(9090, timeout_s=60)


def test_dialling_gives_a_plain_stream_to_the_port() -> None:
    def echo(sock: socket.socket, port: str) -> None:
        sock.sendall(f"{port}:".encode() + sock.recv(100))

    with fake_adb({"tcp": echo}) as server, Adb(SERIAL, server.port).dial(9090, timeout_s=60) as sock:
        assert sock.gettimeout() is None
        sock.sendall(b"hello")
        assert read(sock, 10) == b"9090:hello"


def test_a_job_collects_output_and_ends_with_its_code() -> None:
    def job(sock: socket.socket, _command: str) -> None:
        sock.sendall(packet(STDOUT, b"one ") + packet(STDERR, b"two"))
        assert read(sock, 5) == struct.pack("<BI", 4, 0)  # close-stdin: the request to end
        sock.sendall(packet(EXIT, bytes([143])))

    with fake_adb({"shell,v2,raw": job}) as server:
        running = Adb(SERIAL, server.port).spawn(["x"], environment={}, timeout_s=60)
        assert not running.ended
        assert running.end(5)
    assert (running.code, running.output()) == (143, "one two")


def test_a_job_whose_stream_breaks_ended_without_a_code() -> None:
    def lost(sock: socket.socket, _command: str) -> None:
        sock.sendall(packet(STDOUT, b"last words"))

    with fake_adb({"shell,v2,raw": lost}) as server:
        running = Adb(SERIAL, server.port).spawn(["x"], environment={}, timeout_s=60)
        assert running.wait(60)
        assert not running.end(0)
    assert (running.code, running.output()) == (None, "last words")


def test_a_job_that_does_not_end_is_abandoned() -> None:
    closed = threading.Event()

    def stubborn(sock: socket.socket, _command: str) -> None:
        read(sock, 5)
        assert sock.recv(1) == b""
        closed.set()

    with fake_adb({"shell,v2,raw": stubborn}) as server:
        assert not Adb(SERIAL, server.port).spawn(["x"], environment={}, timeout_s=60).end(0.05)
        assert closed.wait(60)


def test_only_the_newest_output_of_a_job_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("device_runner.transport.base.OUTPUT_LIMIT_BYTES", 10)

    def talk(sock: socket.socket, _command: str) -> None:
        sock.sendall(b"".join(packet(STDOUT, b"%04d" % i) for i in range(100)) + packet(EXIT, b"\0"))

    with fake_adb({"shell,v2,raw": talk}) as server:
        running = Adb(SERIAL, server.port).spawn(["x"], environment={}, timeout_s=60)
        assert running.wait(60)
    assert running.output() == "00980099"
