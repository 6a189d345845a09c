"""What Android's crash handler would write of a worker that died: the first lines of it, without a backtrace.

The wording is bionic's and debuggerd's (AOSP bionic/libc/bionic, debuggerd_handler.cpp; system/core, tombstone). The
phone's `logcat` shows it.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from device_runner.virtual.clock import JUMP_FILE

CRASH_LOG = "data/misc/crash_log"
"""Each line begins with its time, in seconds by the phone's clock."""
MOST_BYTES = 65_536
HANDLED = (signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGSEGV, signal.SIGSYS, signal.SIGTRAP)
"""The signals that the handler hears of; of SIGKILL nobody does."""


def note(worker: int, status: int) -> None:
    """Write down how a worker ended, by the status of `waitpid`, if that is what the handler would."""
    if not os.WIFSIGNALED(status) or os.WTERMSIG(status) not in HANDLED:
        return
    died_of = signal.Signals(os.WTERMSIG(status))
    root = Path(os.environ.get("ANDROID_ROOT", "/system")).parent
    now_s = time.time() + _ahead_s(root / JUMP_FILE)
    shown = time.strftime("%m-%d %H:%M:%S", time.gmtime(now_s)) + f".{int(now_s % 1 * 1000):03}"
    lines = (
        f"F libc    : Fatal signal {died_of.value} ({died_of.name}), code -6 in tid {worker} (tvm_rpc), pid {worker}",
        "F DEBUG   : *** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***",
        f"F DEBUG   : pid: {worker}, tid: {worker}, name: tvm_rpc  >>> tvm_rpc <<<",
        "F DEBUG   : (the virtual phone has no backtrace)",
    )
    log = root / CRASH_LOG
    log.parent.mkdir(exist_ok=True)
    with log.open("a") as file:
        if file.tell() > MOST_BYTES:
            file.truncate(0)
        file.writelines(f"{now_s:.3f} {shown} {worker:5} {worker:5} {line}\n" for line in lines)


def _ahead_s(jump: Path) -> int:
    try:
        return int(jump.read_text())
    except (OSError, ValueError):
        return 0
