"""Waiting for file descriptors (pipes, terminals, processes) in asyncio, without threads."""

from __future__ import annotations

import asyncio
import os
from subprocess import Popen

CHUNK_BYTES = 256 * 1024


def _wake(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


async def readable(fd: int) -> None:
    """Return when a read from `fd` would not block. One waiter per descriptor."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _wake, ready)
    try:
        await ready
    finally:
        loop.remove_reader(fd)


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
            ready: asyncio.Future[None] = loop.create_future()
            loop.add_writer(fd, _wake, ready)
            try:
                await ready
            finally:
                loop.remove_writer(fd)


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
