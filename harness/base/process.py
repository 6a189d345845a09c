"""Programs that we start: they end when we do, with all that they started, and we hear what they say."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, Any

END_TIMEOUT_S = 10.0


def cores() -> int:
    """Return how many cores this process may use: its part of a shared machine (`taskset`, a container's set)."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def bound(code: str) -> tuple[str, str]:
    """Return arguments that make Python run `code` in a process that ends as soon as we are gone, even killed."""
    first = "import signal; from device_runner.lifetime import die_with_parent; die_with_parent(signal.SIGTERM)"
    return "-c", f"{first}; {code}"


def run_to_end(command: Sequence[str], deadline_s: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program that reads nothing, and return what it printed, however it ended. Raises TimeoutExpired."""
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=deadline_s,
        check=False,
        **options,
    )


def complaint_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of a program's error stream; its exit code if it says nothing."""
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


class Listener:
    """Hands on the lines that a program prints, keeps the last, and knows when that was."""

    def __init__(self, stream: IO[str], say: Callable[[str], None]) -> None:
        self.last = ""
        self.heard_at = time.monotonic()  # the last line
        self._thread = threading.Thread(target=self._listen, args=(stream, say), daemon=True)
        self._thread.start()

    def _listen(self, stream: IO[str], say: Callable[[str], None]) -> None:
        with stream:
            for line in stream:
                self.heard_at = time.monotonic()
                self.last = line.strip() or self.last
                say(line.rstrip("\n"))

    @property
    def reading(self) -> bool:
        """Whether there may be more: the program, or something that it started, has the stream open."""
        return self._thread.is_alive()

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the stream, which something may hold open for longer than the program runs."""
        self._thread.join(timeout_s)


def end_family(pid: int) -> None:
    """End a process and its descendants, in whatever groups: ask them first, and kill them after a while."""
    import psutil

    family = _family(pid)
    for process in family:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(family, timeout=END_TIMEOUT_S)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()


def kill_family(pid: int) -> None:
    """Kill a process and its descendants, which may be in groups of their own, and wait for none of them.

    Parents go first: nobody is left to start others, or to tell of the end of a child as if it had died by itself.
    """
    import psutil

    for process in reversed(_family(pid)):
        with contextlib.suppress(psutil.Error):
            process.kill()


def _family(pid: int) -> list[Any]:
    """Return the descendants of a process, the youngest first, and itself; none if it is gone."""
    import psutil

    try:
        return [*reversed(psutil.Process(pid).children(recursive=True)), psutil.Process(pid)]
    except psutil.NoSuchProcess:
        return []
