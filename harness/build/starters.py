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
from typing import Any

from device_runner.files import scratch_folder

GRACE_S = 5.0
WORKER = (sys.executable, "-m", "harness.build.worker")
FORK_SERVER = (sys.executable, "-m", "harness.build.fork_server")
ONE_THREAD = {"TVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Workers run side by side, one on each core."""


class WorkerProcess:
    """A process that does one job: a program of its own."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def wait(self, timeout_s: float) -> int:
        """Its exit code, negative after a signal. Raises TimeoutExpired."""
        return self._process.wait(timeout_s)

    def end(self) -> None:
        """End it and all that it started."""
        _end(self._process)


class Starter:
    """Starts each worker as a program of its own, from any thread.

    A worker that is killed, at its deadline say, leaves its temporary files and the compiler's. All workers have one
    folder for them, which ends with the pool.
    """

    def __init__(self, command: Sequence[str] = WORKER) -> None:
        self._command = command
        self._resources = contextlib.ExitStack()
        self._temporary: Path | None = None
        self._making = threading.Lock()

    def start(self, job_file: Path, log: Path) -> WorkerProcess:
        """Return a worker at a job; what it prints goes to the log."""
        with log.open("wb") as output:
            return WorkerProcess(self._start(str(job_file), stdin=subprocess.DEVNULL, output=output))

    def close(self) -> None:
        """End whatever is kept for further jobs."""
        self._resources.close()

    def _start(self, argument: str, *, stdin: int, output: Any) -> subprocess.Popen[bytes]:
        with self._making:
            if self._temporary is None:
                self._temporary = self._resources.enter_context(scratch_folder())
        return subprocess.Popen(
            [*self._command, argument],
            stdin=stdin,
            stdout=output,
            stderr=subprocess.DEVNULL if output == subprocess.PIPE else output,
            start_new_session=True,
            env={**os.environ, **ONE_THREAD, "TMPDIR": str(self._temporary)},
        )


class ForkStarter(Starter):
    """Keeps processes with the compiler loaded, as many as work at once, and has them fork."""

    def __init__(self, command: Sequence[str] = FORK_SERVER) -> None:
        super().__init__(command)
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def start(self, job_file: Path, log: Path) -> WorkerProcess:
        """Return a fork of an idle process, or of a new one."""
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
        super().close()

    def give_back(self, server: subprocess.Popen[bytes]) -> None:
        """Keep a process for the next job."""
        with self._lock:
            self._idle.append(server)

    def _server(self) -> subprocess.Popen[bytes]:
        return self._start(str(os.getpid()), stdin=subprocess.PIPE, output=subprocess.PIPE)


class _Fork(WorkerProcess):
    """A job that a fork server has in hand."""

    def __init__(self, server: subprocess.Popen[bytes], starter: ForkStarter) -> None:
        super().__init__(server)
        self._starter = starter
        self._returned = False

    def wait(self, timeout_s: float) -> int:
        server = self._process
        assert server.stdout
        if not select.select([server.stdout], [], [], timeout_s)[0]:
            raise subprocess.TimeoutExpired("fork server", timeout_s)
        code = server.stdout.readline()
        if not code:  # the server itself died: by the limit on memory, or killed from outside
            return server.wait(GRACE_S)
        self._starter.give_back(server)
        self._returned = True
        return int(code)

    def end(self) -> None:
        if not self._returned:
            _end(self._process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started (the linker, say)."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(GRACE_S)
    for pipe in filter(None, (process.stdin, process.stdout)):
        with contextlib.suppress(OSError):
            pipe.close()
