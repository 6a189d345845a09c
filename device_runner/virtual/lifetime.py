"""What a process does about its own end, its parent's and its children's. Linux only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil

_PR_SET_PDEATHSIG = 1
END_DEADLINE_S = 2.0
PHONE_ID = "ADRENO_BENCH_PHONE"
"""Environment of every process of a phone; the value is new each time a phone is started."""


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


def end_all_of(phone_id: str) -> None:
    """Kill every process but this one that has the phone's id in its environment, however it detached itself."""
    import psutil

    end = time.monotonic() + END_DEADLINE_S
    while (found := [process for process in psutil.process_iter() if _belongs(process, phone_id)]) and (
        time.monotonic() < end
    ):
        for process in found:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(found, END_DEADLINE_S)


def _belongs(process: psutil.Process, phone_id: str) -> bool:
    import psutil

    try:
        return process.pid != os.getpid() and process.environ().get(PHONE_ID) == phone_id
    except psutil.Error:
        return False
