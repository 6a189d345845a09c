"""Sockets of the phone: where `adb forward` leads to, and `adb reverse` leads from."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from device_runner.stand_ins.virtual import mishaps
from device_runner.stand_ins.virtual.services.child import CHUNK_BYTES
from device_runner.stand_ins.virtual.transport import HostConnection, Stream, StreamRefused

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


class _Failed(Exception):
    """Told to the host after `FAIL`."""


@dataclass(frozen=True)
class _Listener:
    remote: str
    server: asyncio.AbstractServer


_Listeners = dict[str, _Listener]
_listeners: WeakKeyDictionary[HostConnection, _Listeners] = WeakKeyDictionary()


async def reverse(stream: Stream, request: str) -> None:
    """Carry out one request, answer it, and close."""
    name, _, argument = request.partition(":")
    handler = _REQUESTS.get(name)
    await stream.accept()
    try:
        if handler is None:
            raise _Failed("not a reverse forwarding command")
        answer = await handler(stream.transport, argument)
    except _Failed as error:
        answer = b"FAIL" + _counted(str(error))
    await stream.write(answer)


async def _forward(transport: HostConnection, argument: str) -> bytes:
    keep, pair = argument.startswith("norebind:"), argument.removeprefix("norebind:")
    local, _, remote = pair.partition(";")
    if not local or not remote or ";" in remote or remote.startswith("*"):
        raise _Failed(f"bad forward: {pair}")
    listeners = _of(transport)
    if old := listeners.get(local):
        if keep:
            raise _Failed("cannot rebind existing socket")
        old.server.close()
    server, port = await _listen(transport, local, remote)
    bound = f"tcp:{port}"
    listeners[bound] = _Listener(remote, server)
    return b"OKAY" + (_counted(str(port)) if local != bound else b"")


async def _listen(transport: HostConnection, local: str, remote: str) -> tuple[asyncio.AbstractServer, int]:
    kind, _, port = local.partition(":")
    if kind != "tcp" or not port.isascii() or not port.isdigit():
        raise _Failed(f"cannot listen on '{local}': only tcp:PORT")

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            stream = await transport.open(remote)
            await pump(stream, reader, writer)
            await transport.close(stream)
        except BrokenPipeError:
            pass  # nobody listens on the host
        finally:
            writer.transport.abort()

    try:
        server = await asyncio.start_server(connected, LOOPBACK, int(port), limit=CHUNK_BYTES)
    except (OSError, OverflowError) as error:
        raise _Failed(f"cannot bind listener: {error}") from None
    return server, server.sockets[0].getsockname()[1]


async def _list(transport: HostConnection, _: str) -> bytes:
    return _counted("".join(f"host {local} {listener.remote}\n" for local, listener in _of(transport).items()))


async def _kill(transport: HostConnection, local: str) -> bytes:
    if not local or ";" in local:
        raise _Failed(f"bad killforward: {local}")
    listener = _of(transport).pop(local, None)
    if listener is None:
        raise _Failed(f"listener '{local}' not found")
    listener.server.close()
    return b"OKAY"


async def _kill_all(transport: HostConnection, _: str) -> bytes:
    _close_all(_of(transport))
    return b"OKAY"


def _of(transport: HostConnection) -> _Listeners:
    listeners = _listeners.get(transport)
    if listeners is None:
        listeners = _listeners[transport] = {}
        transport.on_end.append(lambda: _close_all(listeners))
    return listeners


def _close_all(listeners: _Listeners) -> None:
    while listeners:
        listeners.popitem()[1].server.close()


def _counted(text: str) -> bytes:
    data = text.encode()
    return b"%04x" % len(data) + data


_REQUESTS: dict[str, Callable[[HostConnection, str], Awaitable[bytes]]] = {
    "forward": _forward,
    "list-forward": _list,
    "killforward": _kill,
    "killforward-all": _kill_all,
}
