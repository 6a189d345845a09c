"""Ctrl-C ends a part of Python code, and a command as a whole."""

from __future__ import annotations

import signal

import pytest
from interruptible import ended_by

from device_runner.interrupt import interruption
from harness.tools.python.interface import interruptible


def test_python_code_goes_on_after_ctrl_c_in_an_interruptible_part() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruptible():
        signal.raise_signal(signal.SIGINT)
    assert interruption() is None
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interruptible_part_of_a_command_ends_the_command() -> None:
    with ended_by(signal.SIGINT), interruptible():
        signal.raise_signal(signal.SIGINT)


def test_a_handler_of_the_callers_own_is_back_afterwards() -> None:
    """As of notebooks and servers, whose handler is none of Python's."""
    usual = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        own = signal.getsignal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt), interruptible():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, usual)
