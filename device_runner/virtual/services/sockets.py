"""Connections to sockets of the phone: what `adb forward` leads to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from device_runner.virtual import mishaps
from device_runner.virtual.fds import CHUNK_BYTES
from device_runner.virtual.transport import Stream, StreamRefused

LOOPBACK = "127.0.0.1"
CONNECT_DEADLINE_S = 10.0

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def tcp(stream: Stream, argument: str) -> None:
    """`tcp:PORT` or `tcp:localhost:PORT`: adbd reaches nothing but itself (AOSP socket_spec.cpp)."""
    host, _, port = argument.rpartition(":")
    if not port.isascii() or not port.isdigit() or host not in ("", "localhost"):
        raise StreamRefused(f"tcp:{argument}")
    await _join(stream, asyncio.open_connection(LOOPBACK, int(port), limit=CHUNK_BYTES))


async def local_abstract(stream: Stream, name: str) -> None:
    """`localabstract:NAME`."""
    await _join(stream, asyncio.open_unix_connection(f"\0{name}", limit=CHUNK_BYTES))


async def local_filesystem(stream: Stream, path: str) -> None:
    """`localfilesystem:PATH`."""
    await _join(stream, asyncio.open_unix_connection(path, limit=CHUNK_BYTES))


async def _join(stream: Stream, connecting: Awaitable[Connection]) -> None:
    try:
        reader, writer = await asyncio.wait_for(connecting, CONNECT_DEADLINE_S)
    except (OSError, OverflowError, ValueError, asyncio.TimeoutError) as error:
        raise StreamRefused(str(error)) from None
    striking = asyncio.ensure_future(mishaps.during(stream.transport))
    try:
        await stream.accept()
        await pump(stream, reader, writer)
    finally:
        striking.cancel()
        writer.transport.abort()


async def pump(stream: Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes both ways until either side ends."""
    outward = asyncio.create_task(_from_socket(stream, reader))
    inward = asyncio.create_task(_to_socket(stream, writer))
    try:
        await asyncio.wait({outward, inward}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (outward, inward):
            task.cancel()
        await asyncio.gather(outward, inward, return_exceptions=True)


async def _from_socket(stream: Stream, reader: asyncio.StreamReader) -> None:
    while data := await reader.read(CHUNK_BYTES):
        await stream.write(data)


async def _to_socket(stream: Stream, writer: asyncio.StreamWriter) -> None:
    while data := await stream.read():
        writer.write(data)
        await writer.drain()
    writer.close()
    await writer.wait_closed()
