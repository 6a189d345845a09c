"""A Dask scheduler and workers as processes of their own, each with its own cache."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from waiting import LONG_S, eventually

COMPILER = "harness.compile.artifacts.fork_server"


class Farm:
    """Hosts that build, on one port of 127.0.0.1."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self.start_scheduler()

    def start_scheduler(self) -> None:
        """Start one, at the same address every time, and wait until it answers: Dask gives up after ten seconds."""
        words = ("scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard", "--no-jupyter")
        self.scheduler = self._start("scheduler", *words)
        assert eventually(self._answers, LONG_S)

    def _answers(self) -> bool:
        with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def start_worker(self, name: str, **environment: str) -> Path:
        """Start a worker that does one job at a time, and wait until the scheduler knows it; its cache."""
        cache = self.folder / name
        cache.mkdir(exist_ok=True)
        words = ("worker", self.address, "--name", name, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        local = ("--host", "127.0.0.1", "--local-directory", str(self.folder / "local"))
        self.workers[name] = self._start(name, *words, *local, ADRENO_BENCH_CACHE=str(cache), **environment)
        log = self.folder / f"{name}.log"
        assert eventually(lambda: "Registered to" in log.read_text(), LONG_S)
        return cache

    def compiling(self) -> dict[str, psutil.Process]:
        """A fork of the compiler's process by the worker that it belongs to."""
        return {
            name: fork
            for name, worker in self.workers.items()
            for server in _children(worker.pid)
            for fork in _children(server.pid)
            if COMPILER in _words(fork)
        }

    def kill_one_that_compiles(self) -> str:
        """Kill a worker in the middle of a job; its name."""
        assert eventually(lambda: bool(self.compiling()), LONG_S)
        name, compiler = next(iter(self.compiling().items()))
        self.workers[name].send_signal(signal.SIGKILL)
        assert eventually(lambda: not compiler.is_running() or compiler.status() == psutil.STATUS_ZOMBIE)
        return name

    def end(self) -> None:
        """Kill all of it."""
        for process in (self.scheduler, *self.workers.values()):
            process.kill()
            process.wait()

    def _start(self, name: str, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            command = [sys.executable, "-m", "dask", *words]
            return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **environment})


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children()
    except psutil.NoSuchProcess:
        return []


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@contextlib.contextmanager
def farm(folder: Path) -> Iterator[Farm]:
    """A scheduler without workers. Skips the test where Dask is not installed."""
    pytest.importorskip("distributed", reason="`make scale` installs it")
    folder.mkdir(exist_ok=True)
    started = Farm(folder)
    try:
        yield started
    finally:
        started.end()
