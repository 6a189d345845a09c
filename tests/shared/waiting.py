"""The one way in which tests wait for what happens in another process."""

import time
from collections.abc import Callable

import psutil

LONG_S = 1500.0
"""More than anything takes that tests wait for, on a busy machine, too. Only what is broken takes as long."""
FENCE_S = 300.0
"""For one call to a device that answers at once, however busy the machine is. Only what is broken takes as long."""
POLL_S = 0.02


def eventually(condition: Callable[[], bool], deadline_s: float = 120.0) -> bool:
    """Whether the condition comes true before the deadline."""
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S)
    return True


def gone(pid: int) -> bool:
    """Whether a process ends before the deadline; one that only waits for its parent to take notice has ended."""

    def has_ended() -> bool:
        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True

    return eventually(has_ended)
