"""A process that loads the compiler once and forks for each job; started by `harness.compile.artifacts.forks`.

Run as `python -m harness.compile.artifacts.fork_server PARENT SOCKET`. Each packet on the socket, which is inherited,
is an order or an answer in JSON: `{"job": N, "file": ..., "log": ...}` forks, `{"end": N}` kills that fork, and
`{"job": N, "code": C}` says how one ended, with a negative code after a signal. It has one thread, so that a fork has
all of it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

from device_runner.lifetime import die_with_parent
from harness.compile.artifacts import worker
from harness.compile.artifacts.forks import PACKET_BYTES

LOADED = (
    "harness.compile.artifacts.compile",
    "harness.compile.artifacts.jobs",
    "onnx.reference",
    "tvm.relax.backend.adreno.pipeline",
    "tvm.relax.frontend.onnx",
    "tvm.s_tir.backend.adreno.pipeline",
    "tvm.s_tir.dlight",
)
"""What a job imports. What a release of TVM does not have is left to the job."""
NICE = 10
"""Jobs are built while others run: what is timed meanwhile, on this machine's own CPU too, comes first."""


def main(parent: int, fd: int) -> int:
    """Serve until the harness closes the socket."""
    die_with_parent(signal.SIGKILL, parent)
    os.nice(NICE)
    gc.set_threshold(50_000)  # to look for garbage among what is imported is a fifth of the time
    for name in LOADED:
        with contextlib.suppress(Exception):  # the job that needs it says so
            importlib.import_module(name)
    with socket.socket(fileno=fd) as harness:
        ForkServer(harness).serve()
    return 0


class ForkServer:
    """Forks, and what the harness knows each by."""

    def __init__(self, harness: socket.socket) -> None:
        self._harness = harness
        self._jobs: dict[int, int] = {}
        """By process."""
        self._ended, self._wake = socket.socketpair()
        self._wake.setblocking(False)

    def serve(self) -> None:
        """Obey until the harness is gone; then end all forks."""
        signal.signal(signal.SIGCHLD, lambda *_: None)  # without a handler, the kernel wakes nobody
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        while True:
            ready = select.select([self._harness, self._ended], [], [])[0]
            if self._ended in ready:
                self._ended.recv(PACKET_BYTES)
                self._report()
            if self._harness in ready:
                if not (order := self._harness.recv(PACKET_BYTES)):
                    break
                self._obey(json.loads(order))
        for pid in self._jobs:
            _kill(pid)

    def _obey(self, order: dict[str, Any]) -> None:
        if "end" in order:
            for pid, job in self._jobs.items():
                if job == order["end"]:
                    _kill(pid)
            return
        server = os.getpid()
        if pid := os.fork():
            self._jobs[pid] = order["job"]
        else:
            self._become_worker(Path(order["file"]), Path(order["log"]), server)

    def _report(self) -> None:
        """Tell the harness of all forks that have ended."""
        while self._jobs:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            ended = {"job": self._jobs.pop(pid), "code": os.waitstatus_to_exitcode(status)}
            self._harness.sendall(json.dumps(ended).encode())

    def _become_worker(self, job_file: Path, log: Path, server: int) -> NoReturn:
        """Do a job in a group of its own, which ends with what the job has started."""
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for inherited in (self._harness, self._ended, self._wake):
                inherited.close()
            os.setpgid(0, 0)
            _redirect(log)
            code = worker.main(job_file, server)
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(OSError):
                    stream.flush()
            os._exit(code)


def _kill(pid: int) -> None:
    """Kill a fork, which nobody has waited for, and all that it started."""
    for kill in (os.kill, os.killpg):  # it may not have a group yet
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def _redirect(log: Path) -> None:
    """Nothing is read, and all that is printed goes to the log."""
    nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for number, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(number, target)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
