"""One host on one connection: the handshake, and the streams that it multiplexes.

Flow control is that of adb without `delayed_ack`: a sender waits for the answer to its last WRTE, and a WRTE from the
host is answered when a service takes it, so a service that is slow slows its sender and nothing piles up.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from device_runner.stand_ins.virtual.fault_file import POLL_S, Dice, FaultFile
from device_runner.stand_ins.virtual.packet import (
    HEADER_BYTES,
    MAX_PAYLOAD_BYTES,
    VERSION,
    AdbCommand,
    Header,
    ProtocolError,
    checksum,
    decode_header,
    encode_header,
)

HANDSHAKE_DEADLINE_S = 10.0
MAX_STREAMS = 1024
MAX_PENDING = 8
"""Packets that a stream holds for its service. One would do, but an adb server that closes a stream sends the rest of
its data without waiting."""
FEATURES = (
    "shell_v2",
    "cmd",
    "stat_v2",
    "ls_v2",
    "fixed_push_mkdir",
    "fixed_push_symlink_timestamp",
    "apex",
    "sendrecv_v2",
    "sendrecv_v2_dry_run_send",
)
_AUTH_TOKEN = 1
_AUTH_PUBLIC_KEY = 3
_SMALL_BYTES = 4096

log = logging.getLogger(__name__)


class StreamRefused(Exception):
    """A service does not take this stream; the host sees `closed`."""


@dataclass(frozen=True)
class Phone:
    """What the protocol needs to know of the phone behind it."""

    root: str
    """Folder that stands for `/`: `/` itself inside the sandbox."""
    environment: dict[str, str]
    """Environment of every process started over adb."""
    faults: FaultFile
    product: dict[str, str] = field(default_factory=dict)
    """`ro.product.*`, shown in the banner."""
    boots: list[object] = field(default_factory=list)
    """Reboots under way: a phone can be told to while it boots."""
    dice: Dice = field(default_factory=Dice)
    tell: Callable[..., None] = lambda **_: None
    """Tells the host that has the phone: `tell(event="reboot")`; see `events`."""


class Stream:
    """One service of one host. Services read, write and return; the transport closes."""

    def __init__(self, transport: HostConnection, local_id: int, remote_id: int) -> None:
        self.transport = transport
        self.local_id = local_id
        self.remote_id = remote_id
        self.closed = asyncio.Event()
        """Set when the host closed the stream, or went away."""
        self.accepted = False
        self._inbox: deque[bytes] = deque()
        self._arrived = asyncio.Event()
        self._credit = asyncio.Event()
        self._turn = asyncio.Lock()

    async def accept(self) -> None:
        """Tell the host that the service runs. Every service does so, or raises StreamRefused."""
        self.accepted = True
        self._credit.set()
        await self.transport.send(AdbCommand.OKAY, self.local_id, self.remote_id)

    async def read(self) -> bytes:
        """Next piece of data from the host, of any size; empty at the end of the stream."""
        while not self._inbox:
            if self.closed.is_set():
                return b""
            self._arrived.clear()
            await self._arrived.wait()
        data = self._inbox.popleft()
        if not self.closed.is_set():
            await self.transport.send(AdbCommand.OKAY, self.local_id, self.remote_id)
        return data

    async def write(self, data: bytes) -> None:
        """Send `data` whole, undivided by other writers. Raises BrokenPipeError when the host is gone."""
        limit = self.transport.max_payload_bytes
        async with self._turn:
            for start in range(0, len(data), limit):
                await self._credited()
                self._credit.clear()
                piece = data if len(data) <= limit else data[start : start + limit]
                await self.transport.send(AdbCommand.WRTE, self.local_id, self.remote_id, piece)

    async def flush(self) -> None:
        """Wait until the host has taken all that was written. Raises BrokenPipeError when it is gone."""
        async with self._turn:
            await self._credited()

    async def _credited(self) -> None:
        await self._credit.wait()
        if self.closed.is_set():
            raise BrokenPipeError("the host closed the stream")

    def on_write(self, payload: bytes) -> None:
        """Take the payload of a WRTE. Raises ProtocolError from a host that does not wait for answers."""
        if len(self._inbox) == MAX_PENDING:
            raise ProtocolError(f"{MAX_PENDING} WRTE without waiting for an OKAY")
        if payload:
            self._inbox.append(payload)
            self._arrived.set()

    def on_okay(self) -> None:
        """Note that the host took the last WRTE, or accepted a stream that we opened."""
        self._credit.set()

    def on_close(self) -> None:
        """Note that the host ended the stream. What it sent before stays readable."""
        self.closed.set()
        self._arrived.set()
        self._credit.set()


Service = Callable[[Stream], Awaitable[None]]
Router = Callable[[str], "Service | None"]


class HostConnection:
    """A host's connection, from its CNXN to its end."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, phone: Phone, route: Router, tasks: TaskSet
    ) -> None:
        self.phone = phone
        self.max_payload_bytes = MAX_PAYLOAD_BYTES
        self.on_end: list[Callable[[], None]] = []
        """Called when the connection has ended."""
        self._reader = reader
        self._writer = writer
        self._route = route
        self._tasks = tasks
        self._streams: dict[int, Stream] = {}
        self._ids = itertools.count(1)
        self._checked = True

    async def run(self) -> None:
        """Serve until the host goes away. Raises ProtocolError if it breaks the protocol."""
        try:
            await asyncio.wait_for(self._meet(), HANDSHAKE_DEADLINE_S)
            await self._authorise()
            await self._introduce()
            if self.phone.faults.now.hollow:
                await self._writer.drain()
                return
            while True:
                self._dispatch(*await self._receive())
        except (asyncio.IncompleteReadError, asyncio.TimeoutError, ConnectionError):
            pass
        finally:
            self.drop()

    def drop(self) -> None:
        """End the connection at once, without a word."""
        self._writer.transport.abort()
        for stream in self._streams.values():
            stream.on_close()
        self._streams.clear()
        while self.on_end:
            self.on_end.pop()()

    def background(self, work: Awaitable[None]) -> None:
        """Run something that outlives this connection."""
        self._tasks.start(work)

    async def send(self, command: AdbCommand, arg0: int, arg1: int, payload: bytes = b"") -> None:
        """Send one packet. What is unsent is bounded by flow control, so there is no waiting for the socket."""
        await self.phone.faults.thawed()
        header = encode_header(command, arg0, arg1, payload, check=self._checked)
        if len(payload) <= _SMALL_BYTES:
            self._writer.write(header + payload)
        else:
            self._writer.write(header)
            self._writer.write(payload)

    async def open(self, destination: str) -> Stream:
        """Open a stream to the host (`reverse`). Raises BrokenPipeError if the host refuses."""
        stream = self._new_stream(remote_id=0)
        await self.send(AdbCommand.OPEN, stream.local_id, 0, os.fsencode(destination) + b"\0")
        await stream.flush()
        return stream

    async def close(self, stream: Stream) -> None:
        """End a stream from our side, after the host has taken what was written."""
        try:
            await stream.flush()
        except BrokenPipeError:
            return
        if self._streams.pop(stream.local_id, None):
            stream.on_close()
            await self.send(AdbCommand.CLSE, stream.local_id, stream.remote_id)

    async def _receive(self) -> tuple[Header, bytes]:
        header = decode_header(await self._reader.readexactly(HEADER_BYTES))
        payload = await self._reader.readexactly(header.length) if header.length else b""
        await asyncio.sleep(self.phone.faults.now.latency_s)
        await self.phone.faults.thawed()
        if self._checked and header.command is not AdbCommand.CNXN and header.check != checksum(payload):
            raise ProtocolError(f"{header.command.name} with a wrong checksum")
        return header, payload

    async def _meet(self) -> None:
        header, _ = await self._receive()
        if header.command is not AdbCommand.CNXN:
            raise ProtocolError(f"{header.command.name} before CNXN")
        self._checked = header.arg0 < VERSION
        self.max_payload_bytes = max(1, min(MAX_PAYLOAD_BYTES, header.arg1))

    async def _authorise(self) -> None:
        faults = self.phone.faults
        while faults.now.unauthorized:
            await self.send(AdbCommand.AUTH, _AUTH_TOKEN, 0, os.urandom(20))
            answer, _ = await self._receive()
            while answer.arg0 == _AUTH_PUBLIC_KEY and faults.now.unauthorized:
                await asyncio.sleep(POLL_S)  # the dialogue on the screen, which nobody answers

    async def _introduce(self) -> None:
        features = self.phone.faults.now.features
        entries = {**self.phone.product, "features": ",".join(FEATURES if features is None else features)}
        banner = "device::" + ";".join(f"{key}={value}" for key, value in entries.items())
        await self.send(AdbCommand.CNXN, VERSION, MAX_PAYLOAD_BYTES, banner.encode())

    def _dispatch(self, header: Header, payload: bytes) -> None:
        if header.command is AdbCommand.OPEN:
            self._on_open(header, payload)
            return
        stream = self._streams.get(header.arg1)
        if stream is None:
            if header.command is AdbCommand.OKAY and header.arg0 and header.arg1:
                self._tasks.start(
                    self.send(AdbCommand.CLSE, header.arg1, header.arg0)
                )  # the host did not hear of its end
            return
        if header.command is AdbCommand.OKAY:
            stream.remote_id = stream.remote_id or header.arg0
            stream.on_okay()
        elif header.command is AdbCommand.WRTE:
            stream.on_write(payload)
        elif header.command is AdbCommand.CLSE:
            del self._streams[stream.local_id]
            stream.on_close()

    def _on_open(self, header: Header, payload: bytes) -> None:
        if not header.arg0:
            return
        destination = os.fsdecode(payload.rstrip(b"\0"))
        delays_answers = header.arg1 != 0
        service = None if delays_answers or len(self._streams) >= MAX_STREAMS else self._route(destination)
        if service is None:
            self._tasks.start(self.send(AdbCommand.CLSE, 0, header.arg0))
        else:
            self._tasks.start(self._serve(service, self._new_stream(header.arg0)))

    def _new_stream(self, remote_id: int) -> Stream:
        stream = Stream(self, next(self._ids), remote_id)
        self._streams[stream.local_id] = stream
        return stream

    async def _serve(self, service: Service, stream: Stream) -> None:
        try:
            await service(stream)
        except StreamRefused as error:
            log.info("refused: %s", error)
        except ConnectionError:
            pass
        except Exception:
            log.exception("a service failed")
        if stream.accepted:
            await self.close(stream)
        else:
            self._streams.pop(stream.local_id, None)
            await self.send(AdbCommand.CLSE, 0, stream.remote_id)


class TaskSet:
    """Tasks that somebody must hold on to; `cancel` ends them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Awaitable[None]) -> None:
        """Run in the background."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def cancel(self) -> None:
        """Cancel all and wait for them."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class Inbox:
    """Reads exact numbers of bytes. Raises EOFError at the end of the stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._rest = memoryview(b"")

    async def some(self, limit: int) -> memoryview:
        """Take at least one byte, at most `limit`, without a copy."""
        if not self._rest:
            self._rest = memoryview(await self._stream.read())
        if not self._rest:
            raise EOFError
        piece, self._rest = self._rest[:limit], self._rest[limit:]
        return piece

    async def exactly(self, size: int) -> bytes:
        """`size` bytes; keep it small, they are held in memory."""
        data = bytearray()
        while len(data) < size:
            data += await self.some(size - len(data))
        return bytes(data)
