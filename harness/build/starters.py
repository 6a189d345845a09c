"""How the pool starts a worker process: from nothing, or forked from one that has loaded the compiler already.

A worker from nothing spends most of its time on imports if all that it compiles is an operator or two. A fork is no
less isolated: it may crash, hang or fill its memory, and the next one does not know.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

GRACE_S = 5.0
WORKER = (sys.executable, "-m", "harness.build.worker")
FORK_SERVER = (sys.executable, "-m", "harness.build.fork_server")
ONE_THREAD = {"TVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Workers run side by side, one on each core."""


class WorkerProcess(Protocol):
    """A process that does one job."""

    def wait(self, timeout_s: float) -> int:
        """Its exit code, negative after a signal. Raises TimeoutExpired."""

    def end(self) -> None:
        """End it and all that it started."""


class Starter(Protocol):
    """Starts workers, from any thread."""

    def start(self, job_file: Path, log: Path) -> WorkerProcess:
        """A worker at a job; what it prints goes to the log."""

    def close(self) -> None:
        """End whatever is kept for further jobs."""


class FreshStarter:
    """Starts each worker as a program of its own."""

    def __init__(self, command: Sequence[str] = WORKER) -> None:
        self._command = command

    def start(self, job_file: Path, log: Path) -> WorkerProcess:
        """A fresh interpreter."""
        with log.open("wb") as output:
            return _FreshProcess(_start([*self._command, str(job_file)], stdin=subprocess.DEVNULL, output=output))

    def close(self) -> None:
        """Nothing is kept."""


class ForkStarter:
    """Keeps processes with the compiler loaded, as many as work at once, and has them fork."""

    def __init__(self, command: Sequence[str] = FORK_SERVER) -> None:
        self._command = command
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def start(self, job_file: Path, log: Path) -> WorkerProcess:
        """A fork of an idle process, or of a new one."""
        with self._lock:
            server = self._idle.pop() if self._idle else self._server()
        try:
            assert server.stdin
            server.stdin.write(json.dumps([str(job_file), str(log)]).encode() + b"\n")
            server.stdin.flush()
        except OSError:  # it was killed between two jobs
            _end(server)
            return self.start(job_file, log)
        return _Fork(server, self)

    def close(self) -> None:
        """End the processes that wait for further jobs."""
        with self._lock:
            while self._idle:
                _end(self._idle.pop())

    def give_back(self, server: subprocess.Popen[bytes]) -> None:
        """Keep a process for the next job."""
        with self._lock:
            self._idle.append(server)

    def _server(self) -> subprocess.Popen[bytes]:
        return _start([*self._command, str(os.getpid())], stdin=subprocess.PIPE, output=subprocess.PIPE)


class _FreshProcess:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def wait(self, timeout_s: float) -> int:
        return self._process.wait(timeout_s)

    def end(self) -> None:
        _end(self._process)


class _Fork:
    """A job that a fork server has in hand."""

    def __init__(self, server: subprocess.Popen[bytes], keeper: ForkStarter) -> None:
        self._server: subprocess.Popen[bytes] | None = server
        self._keeper = keeper

    def wait(self, timeout_s: float) -> int:
        assert self._server
        assert self._server.stdout
        if not select.select([self._server.stdout], [], [], timeout_s)[0]:
            raise subprocess.TimeoutExpired("fork server", timeout_s)
        told = self._server.stdout.readline()
        if not told:  # the server itself died: by the limit on memory, or killed from outside
            return self._server.wait(GRACE_S)
        self._keeper.give_back(self._server)
        self._server = None
        return int(told)

    def end(self) -> None:
        if self._server:
            _end(self._server)


def _start(command: Sequence[str], *, stdin: int, output: Any) -> subprocess.Popen[bytes]:
    errors = subprocess.DEVNULL if output == subprocess.PIPE else output
    return subprocess.Popen(
        command, stdin=stdin, stdout=output, stderr=errors, start_new_session=True, env={**os.environ, **ONE_THREAD}
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started (the linker, say)."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    for pipe in filter(None, (process.stdin, process.stdout)):
        with contextlib.suppress(OSError):
            pipe.close()
