"""Ctrl-C in Python code that goes on afterwards."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from device_runner.interrupt import end_at, interrupt, interruption


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C end the body alone, with KeyboardInterrupt.

    Outside the main thread, and inside `end_at`, it changes nothing.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is interrupt:
        yield
        return
    try:
        with end_at(signal.SIGINT):
            yield
    except SystemExit:
        if not interruption():
            raise
        with end_at():  # forgets the signal: the process goes on
            pass
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
