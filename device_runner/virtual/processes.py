"""The processes of a phone, found by what is in their environment. Linux only."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

_ROUNDS = 50
_ROUND_S = 0.02
PHONE_ID = "ADRENO_BENCH_PHONE"
"""Environment of every process of a phone; the value is new each time a phone is started."""


def end_all_of(phone_id: str, *, running: Sequence[bytes] = (b"",)) -> None:
    """Kill every process but this one that has the phone's id in its environment, however it detached itself.

    With `running`, only those that have one of these in their command line.
    """
    mark = f"{PHONE_ID}={phone_id}".encode()
    for _ in range(_ROUNDS):  # a process may start another while we look
        found = [pid for pid in _others() if mark in _environment(pid) and _has_any(_command_line(pid), running)]
        if not found:
            return
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_ROUND_S)


def _has_any(line: bytes, words: Sequence[bytes]) -> bool:
    return any(word in line for word in words)


def _others() -> list[int]:
    """Without the first process, which in a sandbox is the sandbox, and cannot be killed from within."""
    found = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    return [pid for pid in found if pid not in (1, os.getpid())]


def _environment(pid: int) -> list[bytes]:
    return _told(pid, "environ").split(b"\0")


def _command_line(pid: int) -> bytes:
    return _told(pid, "cmdline")


def _told(pid: int, what: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""  # it ended, or is another user's
