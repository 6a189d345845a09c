"""The signal that asked this process to end, which counts however its exception fares.

The handler raises SystemExit wherever the main thread is. TVM frees remote objects in destructors, and waits there for
the device: an exception that is raised in one is dropped (tvm-ffi 0.1.14, `CObject.__dealloc__`), and the connection is
out of step with the server, so that what fails next looks like a fault of the program. The signal is therefore kept
here, and whatever turns errors into findings asks first.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_handled: list[int] = []
_received: list[int] = []


@contextmanager
def end_at(*signals: int) -> Iterator[None]:
    """Let these signals end this process: the first raises SystemExit with 128 + its number, all later ones nothing.

    However the body ends, it ends with that SystemExit if there was a signal. Without one, the
    caller gets its handlers back. Only the main thread may call this.
    """
    _received.clear()
    _handled[:] = signals
    before = {number: signal.signal(number, interrupt) for number in signals}
    try:
        yield
    finally:
        raise_if_interrupted()
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def interruption() -> SystemExit | None:
    """Return what a signal that asked this process to end has raised, or would have; None without one."""
    return SystemExit(128 + _received[0]) if _received else None


def raise_if_interrupted() -> None:
    """Raise SystemExit again if a signal asked this process to end, wherever its first one was lost."""
    if stop := interruption():
        raise stop


def interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    """Unwind once, so that everything is cleaned up; a second signal must not interrupt that (it has deadlines)."""
    for other in _handled:
        signal.signal(other, signal.SIG_IGN)
    _received.append(number)
    raise SystemExit(128 + number)
