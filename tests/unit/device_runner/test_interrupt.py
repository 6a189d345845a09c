"""A signal that asks a process to end is never lost, wherever it arrives."""

from __future__ import annotations

import signal

import pytest
from interruptible import ended_by

from device_runner.interrupt import end_at, interruption, raise_if_interrupted


class InterruptedWhenFreed:
    """As an object of TVM's on a device: what is raised while it is freed is dropped."""

    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_a_destructor_dropped_ends_the_program_all_the_same() -> None:
    went_on = False
    with ended_by(signal.SIGINT):
        thing = InterruptedWhenFreed()
        del thing
        went_on = True
        raise SystemExit(0)
    assert went_on


def test_the_first_signal_decides_and_later_ones_do_not_disturb_the_way_out() -> None:
    with ended_by(signal.SIGTERM):
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)


def test_without_a_signal_everything_is_as_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)
    with end_at(signal.SIGINT):
        assert signal.getsignal(signal.SIGINT) is not before
        raise_if_interrupted()
    assert signal.getsignal(signal.SIGINT) is before
    assert interruption() is None
