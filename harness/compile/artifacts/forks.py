"""Workers of the pool, each forked from one process that has the compiler loaded: the imports take longest of a job.

A fork is no less isolated than a program of its own: it may crash, hang or fill its memory, and the next one does not
know. What the two processes say to each other is in `harness.compile.artifacts.fork_server`.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDone
from pathlib import Path

from device_runner.failures import RigFailure
from device_runner.files import scratch_folder
from harness.base.process import kill_family

GRACE_S = 5.0
SERVER = (sys.executable, "-m", "harness.compile.artifacts.fork_server")
ONE_THREAD = {"TVM_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Workers run side by side, one on each core."""
STARTS = 3
PACKET_BYTES = 65_536
"""Most that the two processes say at once."""


class Forks:
    """Starts workers, from any thread. The process that forks them is started with the first, and again if it dies.

    A worker that is killed, at its deadline say, leaves its temporary files and the compiler's. All workers have one
    folder for them, which ends with this.
    """

    def __init__(self, command: Sequence[str] = SERVER) -> None:
        self._command = command
        self._resources = contextlib.ExitStack()
        self._temporary: Path | None = None
        self._server: _Server | None = None
        self._lock = threading.Lock()
        self._closed = False

    def load(self) -> None:
        """Start the process that loads the compiler, for a worker that is wanted soon.

        It has no thread of ours before the first worker, so that this process may still fork.
        """
        self._living_server()

    def start(self, job_file: Path, log: Path) -> Fork:
        """Return a worker at a job; what it prints goes to the log. Raises RigFailure once this is closed."""
        for _ in range(STARTS):
            server = self._living_server(listen=True)
            try:
                return server.fork(job_file, log)
            except OSError:  # it was killed between two jobs
                self._forget(server)
        raise _died()

    def close(self) -> None:
        """End all workers and whatever they have started."""
        with self._lock:
            self._closed = True
            if self._server:
                self._server.kill()
        self._resources.close()

    def _living_server(self, *, listen: bool = False) -> _Server:
        with self._lock:
            if self._closed:
                raise RigFailure("the build was stopped")
            if self._temporary is None:
                self._temporary = self._resources.enter_context(scratch_folder())
            if self._server is None or self._server.ended:
                self._server = _Server(self._command, self._temporary)
            if listen:
                self._server.listen()
            return self._server

    def _forget(self, server: _Server) -> None:
        with self._lock:
            if self._server is server:
                self._server = None


class Fork:
    """A worker at one job."""

    def __init__(self, server: _Server, number: int, code: Future[int]) -> None:
        self._server, self._number, self._code = server, number, code

    def wait(self, timeout_s: float) -> int:
        """Return its exit code, negative after a signal. Raises TimeoutError, and RigFailure if its server died."""
        try:
            return self._code.result(timeout_s)
        except NotDone:  # not the same as TimeoutError before Python 3.11
            raise TimeoutError from None

    def end(self) -> None:
        """End it and all that it started."""
        if self._code.done():
            return
        self._server.end(self._number)
        try:
            self.wait(GRACE_S)
        except TimeoutError:
            self._server.kill()
        except RigFailure:
            return


class _Server:
    """The process that forks, and a thread that hears how its forks ended once it listens."""

    def __init__(self, command: Sequence[str], temporary: Path) -> None:
        self._codes: dict[int, Future[int]] = {}
        self._numbers = itertools.count()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [*command, str(os.getpid()), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={**os.environ, **ONE_THREAD, "TMPDIR": str(temporary)},
            )
        self._listener = threading.Thread(target=self._hear, name="fork server", daemon=True)

    def listen(self) -> None:
        """Hear how forks end, from before the first."""
        if not self._listener.ident:
            self._listener.start()

    @property
    def ended(self) -> bool:
        """Whether the process is gone."""
        return self._process.poll() is not None

    def fork(self, job_file: Path, log: Path) -> Fork:
        """Begin a job. Raises OSError if the process is gone."""
        number, code = next(self._numbers), Future[int]()
        self._codes[number] = code
        self._order({"job": number, "file": str(job_file), "log": str(log)})
        return Fork(self, number, code)

    def end(self, number: int) -> None:
        """Have a fork killed."""
        with contextlib.suppress(OSError):
            self._order({"end": number})

    def kill(self) -> None:
        """End the process and its forks, whatever they are at."""
        kill_family(self._process.pid)
        self._process.wait()

    def _order(self, order: dict[str, object]) -> None:
        self._socket.sendall(json.dumps(order).encode())

    def _hear(self) -> None:
        """Pass on how each fork ended. Once the process is gone, tell that to all who still wait."""
        with self._socket, contextlib.suppress(OSError):
            while answer := self._socket.recv(PACKET_BYTES):
                reply = json.loads(answer)
                self._codes.pop(reply["job"]).set_result(reply["code"])
        for code in list(self._codes.values()):  # one that comes now finds the socket closed
            code.set_exception(_died())


def _died() -> RigFailure:
    hint = "run it again; `adreno-bench doctor` says whether TVM can be imported"
    return RigFailure("the process that starts the compilers died", hint=hint)
