"""A process that ends with the one that started it, however that ends.

Run as a file, `lifetime.py PARENT COMMAND [ARGUMENT...]`, it becomes the command, bound in this way. It imports nothing
but the standard library, so that this works in an interpreter that is told to find nothing else.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def die_with_parent(signum: int, parent: int | None = None) -> None:
    """Have the kernel send `signum` to this process when the thread that started it ends. On Linux only.

    `parent` is the process that should be ours; one that died before we could ask is noticed for certain only if its
    id was told to us by itself. Raises OSError if the kernel refuses.
    """
    if sys.platform != "linux":
        return
    expected = os.getppid() if parent is None else parent
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signum), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != expected:
        os.kill(os.getpid(), signum)  # it died before we asked


def dying_with_parent(argv: Sequence[str]) -> list[str]:
    """Return a command line that runs `argv` so that the kernel kills it with this process."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *argv]


if __name__ == "__main__":
    die_with_parent(signal.SIGKILL, int(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
