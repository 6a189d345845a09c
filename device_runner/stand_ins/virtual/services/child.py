"""Starting a command of the phone on sockets or on a terminal, and waiting for it in asyncio, without threads."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import shutil
import signal
import socket
import struct
import subprocess
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from device_runner.stand_ins.virtual.phone import PROGRAMS
from device_runner.stand_ins.virtual.transport import Phone
from device_runner.stand_ins.virtual.userland import HOST_PATH


@dataclass
class Child:
    """A running command and our ends of its sockets or its terminal, all non-blocking."""

    process: subprocess.Popen[bytes]
    stdin: int
    outputs: tuple[int, ...]
    """Stdout, and stderr unless it is merged."""
    on_terminal: bool = False

    def close_stdin(self) -> None:
        """Let the command read an end of file. A terminal has no such half, so nothing happens there."""
        if not self.on_terminal and self.stdin >= 0:
            with socket.socket(fileno=self.stdin) as end:
                end.shutdown(socket.SHUT_WR)
            self.stdin = -1

    def hang_up(self) -> None:
        """Send SIGHUP if it still runs."""
        self.process.send_signal(signal.SIGHUP)

    def hang_up_on_group(self) -> None:
        """Send SIGHUP to what the command, which has ended, left behind in its process group.

        The kernel does so for a command with a terminal, and adbd gives one to each of version 1.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGHUP)

    def close_outputs(self) -> None:
        """Stop listening. On a terminal the kernel then sends SIGHUP, elsewhere a later write raises SIGPIPE."""
        outputs, self.outputs = self.outputs, ()
        for fd in outputs:
            os.close(fd)

    def close(self) -> None:
        """Close all our ends."""
        self.close_stdin()
        self.close_outputs()

    def resize(self, rows: int, columns: int, width_px: int, height_px: int) -> None:
        """Tell the terminal its size."""
        if self.on_terminal and self.outputs:
            with contextlib.suppress(OSError, struct.error):
                fcntl.ioctl(self.stdin, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, width_px, height_px))


def on_sockets(phone: Phone, command: str, *, merged: bool) -> Child:
    """Start a command with one socket for stdin and stdout, and another for stderr unless that is `merged` as well.

    A process that holds its stdin holds back the end of its stdout. Source: AOSP daemon/shell_service.cpp, ForkAndExec.
    """
    pairs = [socket.socketpair() for _ in range(1 if merged else 2)]
    ours, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    try:
        process = subprocess.Popen(
            _argv(phone, command),
            cwd=phone.root,
            env=phone.environment,
            start_new_session=True,
            stdin=theirs[0].fileno(),
            stdout=theirs[0].fileno(),
            stderr=theirs[-1].fileno(),
        )
    except BaseException:
        for end in ours:
            end.close()
        raise
    finally:
        for end in theirs:
            end.close()
    for end in ours:
        end.setblocking(False)
    return Child(process, os.dup(ours[0].fileno()), tuple(end.detach() for end in ours))


def on_terminal(phone: Phone, command: str, term: str) -> Child:
    """Start a command, or a login shell for an empty one, on a terminal of its own."""
    master, slave = pty.openpty()
    try:
        process = subprocess.Popen(
            _argv(phone, command),
            cwd=phone.root,
            env={**phone.environment, "TERM": term or "dumb"},
            start_new_session=True,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - the daemon has one thread
        )
    finally:
        os.close(slave)
    os.set_blocking(master, False)
    return Child(process, master, (master,), on_terminal=True)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _argv(phone: Phone, command: str) -> list[str]:
    shell = str(Path(phone.root) / PROGRAMS / "sh")
    argv = [shell, "-c", command] if command else [shell, "-"]
    if phone.faults.now.read_only and phone.root == "/":
        bwrap = shutil.which("bwrap", path=HOST_PATH) or "bwrap"
        return [bwrap, "--dev-bind", "/", "/", "--ro-bind", "/data", "/data", "--die-with-parent", "--", *argv]
    return argv


CHUNK_BYTES = 256 * 1024


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


async def _until(watch: Callable[..., object], unwatch: Callable[[int], object], fd: int) -> None:
    """Wait until the event loop finds a descriptor ready. One waiter per descriptor."""
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    watch(fd, _wake, ready)
    try:
        await ready
    finally:
        unwatch(fd)


async def readable(fd: int) -> None:
    """Wait until a read from `fd` would not block."""
    loop = asyncio.get_running_loop()
    await _until(loop.add_reader, loop.remove_reader, fd)


async def read_some(fd: int) -> bytes:
    """Read from a non-blocking descriptor; empty at its end."""
    while True:
        try:
            return os.read(fd, CHUNK_BYTES)
        except BlockingIOError:
            await readable(fd)
        except OSError:
            return b""  # EIO: the last process left this terminal


async def write_all(fd: int, data: bytes | memoryview) -> None:
    """Write to a non-blocking descriptor. Raises OSError when the other end is gone."""
    loop = asyncio.get_running_loop()
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            await _until(loop.add_writer, loop.remove_writer, fd)


async def exit_code(process: Popen[bytes]) -> int:
    """Wait for a process; a death by signal N counts as 128 + N, as in a shell. Reaps it."""
    if process.returncode is None:
        fd = os.pidfd_open(process.pid)
        try:
            await readable(fd)
        finally:
            os.close(fd)
    code = process.wait()
    return code if code >= 0 else 128 - code
