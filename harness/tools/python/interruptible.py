"""Ctrl-C in Python code that goes on afterwards."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from device_runner.interrupt import end_at, interruption


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the body alone, with KeyboardInterrupt.

    Outside the main thread, and where something else than Python's own handler has the signal, it changes nothing.
    """
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if threading.current_thread() is not threading.main_thread() or not usual:
        yield
        return
    try:
        with end_at(signal.SIGINT):
            yield
    except SystemExit:
        if not interruption():
            raise
        with end_at():
            """Forget the signal: the process goes on."""
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
