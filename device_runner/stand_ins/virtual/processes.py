"""Processes: those of a phone, found by their environment (Linux only), and those of ours that end when we do."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import IO

from device_runner.failures import RigFailure

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
        pids = [
            pid
            for pid in _others()
            if mark in _read_proc(pid, "environ").split(b"\0")
            and any(word in _read_proc(pid, "cmdline") for word in running)
        ]
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_ROUND_S)


def _others() -> list[int]:
    """Return all processes but the first, which in a sandbox is the sandbox and cannot be killed from within."""
    pids = [int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()]
    return [pid for pid in pids if pid not in (1, os.getpid())]


def _read_proc(pid: int, what: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""  # it ended, or is another user's


TERM_DEADLINE_S = 2.0
KILL_DEADLINE_S = 5.0


class Children:
    """Starts processes and, as a context, ends them in reverse order.

    The kernel ties a child to the *thread* that started it, so one thread starts them all and lives as long as they.
    """

    def __init__(self) -> None:
        self._starter = ThreadPoolExecutor(1, thread_name_prefix="children")
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        stderr: IO[bytes],
        stdout: IO[bytes] | int = subprocess.DEVNULL,
        pass_fds: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        """Start `argv` in a session of its own, so that Ctrl-C in a terminal reaches only us."""
        process = self._starter.submit(
            subprocess.Popen,
            list(argv),
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=pass_fds,
            start_new_session=True,
        ).result()
        self._processes.append(process)
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """End one of them before the rest."""
        self._processes.remove(process)
        _end(process)

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            while self._processes:
                _end(self._processes.pop())
        finally:
            self._starter.shutdown(wait=False)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask with SIGTERM, then kill. Raises RigFailure if even that does not end it."""
    process.terminate()
    try:
        process.wait(TERM_DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        try:
            process.wait(KILL_DEADLINE_S)
        except subprocess.TimeoutExpired:
            raise RigFailure(f"process {process.pid} does not end", hint="it hangs in the kernel; see ps") from None
    finally:
        if process.stdout:
            process.stdout.close()
