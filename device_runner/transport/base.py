"""How to reach a machine that runs artifacts: give it commands, dial its ports, keep a process alive on it.

A phone (through adb) and this host (through its own shell) differ only here; servers, sessions and identities are made
of these few verbs, and so are which boot of it this is and how much room is left.
"""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from device_runner.device import PushResult, ShellResult
from device_runner.failures import DeviceFailure, RigFailure

OUTPUT_LIMIT_BYTES = 262_144
"""How much of a process's newest output is kept."""


class RemoteProcess:
    """A command that runs until it ends or is hung up on, drained by a thread so that it never blocks on its output.

    `events` yields pieces of output, and the exit code last; without a code the connection to the process was lost.
    `hang_up` closes its standard input, `abandon` closes the connection, which ends `events`.
    """

    def __init__(
        self, events: Iterator[bytes | int], *, hang_up: Callable[[], None], abandon: Callable[[], None]
    ) -> None:
        self._events = events
        self._hang_up = hang_up
        self._abandon = abandon
        self._pieces: deque[bytes] = deque()
        self._kept_bytes = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.code: int | None = None
        """Exit code, 128 + signal after a death by signal; None while it runs and if the connection was lost."""
        threading.Thread(target=self._drain, name="remote-output", daemon=True).start()

    @property
    def ended(self) -> bool:
        """Whether it ended, or can no longer be heard."""
        return self._ended.is_set()

    def wait(self, timeout_s: float) -> bool:
        """Return whether it ended within the time."""
        return self._ended.wait(timeout_s)

    def output(self) -> str:
        """Return the newest output, both streams in order of arrival, at most `OUTPUT_LIMIT_BYTES`."""
        with self._lock:
            return b"".join(self._pieces).decode(errors="replace")

    def end(self, timeout_s: float) -> bool:
        """Ask it to end by closing its standard input; whether it did. Afterwards it is abandoned in any case."""
        self._hang_up()
        ended = self.wait(timeout_s)
        self._abandon()
        return ended and self.code is not None

    def _drain(self) -> None:
        try:
            for event in self._events:
                if isinstance(event, int):
                    self.code = event
                elif event:  # empty pieces without end would fill the memory
                    self._keep(event)
        except OSError:
            pass  # `code` stays None: that is how a lost connection reads
        finally:
            self._ended.set()

    def _keep(self, piece: bytes) -> None:
        with self._lock:
            self._pieces.append(piece)
            self._kept_bytes += len(piece)
            while self._kept_bytes > OUTPUT_LIMIT_BYTES and len(self._pieces) > 1:
                self._kept_bytes -= len(self._pieces.popleft())


class Transport(Protocol):
    """A machine that can be reached. Every method raises `DeviceFailure` or `RigFailure` when it cannot be."""

    @property
    def name(self) -> str:
        """How messages call the machine."""

    @property
    def root(self) -> str:
        """A folder on the machine that is ours."""

    def shell(self, command: Sequence[str], *, timeout_s: float) -> ShellResult:
        """Run a command to its end."""

    @property
    def hides_environment(self) -> bool:
        """Whether `spawn` brings variables to a process where no other user of the machine can read them."""

    def spawn(self, command: Sequence[str], *, environment: Mapping[str, str], timeout_s: float) -> RemoteProcess:
        """Start a command that goes on; it is hung up on when this process dies. `timeout_s` bounds the start only."""

    def dial(self, port: int, *, timeout_s: float) -> socket.socket:
        """Return a stream to a TCP port of the machine's loopback.

        Raises ConnectionRefusedError if nothing listens there.
        """

    def push(self, file: Path, sha256: str, *, timeout_s: float) -> PushResult:
        """Bring a file to the machine under its hash."""


BOOT_ID = "/proc/sys/kernel/random/boot_id"
"""New in each boot (Linux, random(4))."""


def boot_of(transport: Transport, *, timeout_s: float) -> str:
    """Return the id of this boot, empty if the machine does not tell. Raises `Failure` if it does not answer."""
    return transport.shell(["cat", BOOT_ID], timeout_s=timeout_s).stdout.strip()


ASK_S = 2.0
NEARLY_BYTES = 1 << 20
"""Least free space for a program to run."""


def free_bytes(device: Transport, folder: str) -> int | None:
    """Free bytes on the disk of a folder, as `df` tells; None if the device does not tell."""
    with suppress(DeviceFailure, RigFailure, IndexError, ValueError):
        printed = device.shell(["df", "-k", folder], timeout_s=ASK_S).stdout
        return int(printed.splitlines()[-1].split()[3]) * 1024
    return None


def megabytes(free: int) -> str:
    """Format a size in MB."""
    return f"{free / 1e6:.1f} MB free"
