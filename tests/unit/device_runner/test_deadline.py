from __future__ import annotations

import socket

import pytest

from device_runner.deadline import Deadline


def test_a_passed_deadline_still_grants_one_attempt() -> None:
    assert len(list(Deadline(0).attempts(1.0))) == 1


def test_attempts_end_with_the_deadline_however_long_the_pause_is() -> None:
    assert 1 <= len(list(Deadline(0.01).attempts(60.0))) <= 2


def test_what_remains_is_never_negative() -> None:
    assert Deadline(-5).remaining_s == 0


def test_a_socket_gets_no_more_time_than_is_left() -> None:
    with socket.socket() as sock:
        Deadline(7).bound(sock)
        timeout = sock.gettimeout()
    assert timeout is not None
    assert timeout <= 7


def test_nothing_is_started_after_the_deadline() -> None:
    with socket.socket() as sock, pytest.raises(TimeoutError):
        Deadline(0).bound(sock)
