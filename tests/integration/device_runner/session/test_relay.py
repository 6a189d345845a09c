from __future__ import annotations

import contextlib
import signal
import socket
import struct
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator

import psutil
import pytest
from fake_adb import read
from interruptible import ended_by
from waiting import LONG_S

from device_runner.session.relay import Relay
from device_runner.session.rpc_replies import CALL, MAGIC, RETURN

HELLO = struct.pack("<ii", MAGIC, 1) + b"k"


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(LONG_S)
    with ours, theirs:
        yield ours, theirs


def client_of(relay: Relay) -> socket.socket:
    return socket.create_connection(("127.0.0.1", relay.port), timeout=LONG_S)


def test_bytes_pass_in_both_directions(ends: tuple[socket.socket, socket.socket]) -> None:
    device, stream = ends
    call = HELLO + struct.pack("<QiQi", 16, CALL, 0, 0)
    answer = HELLO + struct.pack("<QiiiqiQ", 32 + 400_000, RETURN, 2, 1, 9, 9, 400_000) + b"pong" * 100_000
    with Relay(stream) as relay, client_of(relay) as client:
        client.sendall(call)
        assert read(device, len(call)) == call
        device.sendall(answer)
        assert read(client, len(answer)) == answer
        assert relay.open


def test_what_no_server_sends_does_not_arrive(ends: tuple[socket.socket, socket.socket]) -> None:
    device, stream = ends
    with Relay(stream) as relay, client_of(relay) as client:
        client.sendall(HELLO)
        read(device, len(HELLO))
        device.sendall(HELLO + struct.pack("<Qi", 4, CALL))
        assert client.recv(64) == b""
        assert relay.nonsense == "an answer without a question"
        assert not relay.open


def test_a_deadline_cuts_both_sides_and_says_so(ends: tuple[socket.socket, socket.socket]) -> None:
    device, stream = ends
    with Relay(stream) as relay, client_of(relay) as client, relay.deadline(0.05):
        assert client.recv(1) == b""
        assert device.recv(1) == b""
        assert relay.expired
        assert not relay.open


def test_a_call_that_ends_in_time_leaves_the_stream_open(ends: tuple[socket.socket, socket.socket]) -> None:
    device, stream = ends
    with Relay(stream) as relay, client_of(relay) as client:
        with relay.deadline(2.0):
            client.sendall(b"a")
            assert read(device, 1) == b"a"
        client.settimeout(2.2)
        with pytest.raises(TimeoutError):
            client.recv(1)
        assert relay.open


def test_a_stream_that_the_device_closes_has_not_expired(ends: tuple[socket.socket, socket.socket]) -> None:
    device, stream = ends
    with Relay(stream) as relay, client_of(relay) as client, relay.deadline(60):
        device.close()
        assert client.recv(1) == b""
        assert not relay.open
        assert not relay.expired


def test_cutting_ends_a_blocked_call(ends: tuple[socket.socket, socket.socket]) -> None:
    _, stream = ends
    with Relay(stream) as relay, client_of(relay) as client:
        relay.cut()
        assert client.recv(1) == b""


def test_a_signal_that_another_thread_hears_ends_a_blocked_call(ends: tuple[socket.socket, socket.socket]) -> None:
    """As one that arrives while TVM is on its way into `recv`: no system call is interrupted."""
    device, stream = ends

    def hear() -> None:
        read(device, 1)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    other = threading.Thread(target=hear)
    with Relay(stream) as relay, client_of(relay) as client:
        other.start()
        with ended_by(signal.SIGTERM), relay.deadline(2 * LONG_S):
            client.sendall(b"x")
            client.recv(1)
            pytest.fail("the handler did not raise")
        assert not relay.open
        assert not relay.expired
    other.join()
    assert signal.set_wakeup_fd(-1) == -1


def test_another_threads_call_goes_on_at_a_signal(ends: tuple[socket.socket, socket.socket]) -> None:
    device, stream = ends
    answers: list[bytes] = []
    with Relay(stream) as relay, client_of(relay) as client:

        def call() -> None:
            with relay.deadline(LONG_S):
                client.sendall(b"x")
                answers.append(client.recv(1))

        caller = threading.Thread(target=call)
        with ended_by(signal.SIGTERM):
            caller.start()
            read(device, 1)
            signal.raise_signal(signal.SIGTERM)
        device.sendall(b"y")
        caller.join()
    assert answers == [b"y"]


def test_only_one_client_is_led_through(ends: tuple[socket.socket, socket.socket]) -> None:
    device, stream = ends
    with Relay(stream) as relay, client_of(relay) as client:
        client.sendall(b"x")
        read(device, 1)
        with pytest.raises(ConnectionRefusedError):
            client_of(relay)


def test_closing_leaves_no_process(ends: tuple[socket.socket, socket.socket]) -> None:
    before = {child.pid for child in psutil.Process().children()}
    with Relay(ends[1]) as relay:
        assert {child.pid for child in psutil.Process().children()} > before
    assert not relay.open
    assert {child.pid for child in psutil.Process().children()} == before


def test_a_relay_that_is_killed_is_not_mistaken_for_its_device(ends: tuple[socket.socket, socket.socket]) -> None:
    device, stream = ends
    others = set(psutil.Process().children())
    with Relay(stream) as relay, client_of(relay) as client:
        client.sendall(b"x")
        read(device, 1)
        (process,) = set(psutil.Process().children()) - others
        process.kill()
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""
        assert relay.died
        assert not relay.expired


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGTERM])
def test_the_relay_ends_with_its_owner(sign: signal.Signals) -> None:
    script = """
        import socket, time
        from device_runner.session.relay import Relay
        device, stream = socket.socketpair()
        relay = Relay(stream)
        client = socket.create_connection(("127.0.0.1", relay.port))
        print(relay._process.pid, flush=True)
        time.sleep(60)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        relay = psutil.Process(int(owner.stdout.readline()))
        owner.send_signal(sign)
    relay.wait(LONG_S)
