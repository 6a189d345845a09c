"""What a process does about its own end, its parent's and its children's. Linux only."""

from __future__ import annotations

import contextlib
import ctypes
import os

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
END_DEADLINE_S = 2.0


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option})")


def die_with_parent(signum: int) -> None:
    """Have the kernel send `signum` when the thread that started this process ends."""
    parent = os.getppid()
    _prctl(_PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        os.kill(os.getpid(), signum)  # it died before we could ask


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none escapes `end_descendants`."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_descendants() -> None:
    """Kill every descendant of this process, also those in sessions of their own."""
    import psutil

    while descendants := psutil.Process().children(recursive=True):
        for process in descendants:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        _, alive = psutil.wait_procs(descendants, END_DEADLINE_S)
        if alive:
            return  # in the kernel, beyond reach
