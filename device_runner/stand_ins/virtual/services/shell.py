"""Commands: `shell:`, `shell,v2:`, `exec:`, on sockets or on a terminal.

The versions differ as on a phone. Version 1 merges stdout and stderr, tells no exit code, hangs up on what the command
leaves behind, and does not kill it when the host leaves. Version 2 frames everything, tells the exit code, and sends
SIGHUP when the host leaves. Both last as long as anybody holds the output open, or the input, which is the same socket.
Where adbd gives version 1 a raw terminal there is a socket here, so that its stdin has an end.
Source: AOSP shell_protocol.h, daemon/shell_service.cpp.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import struct
from collections.abc import Awaitable, Callable
from enum import IntEnum

from device_runner.stand_ins.virtual.services import child
from device_runner.stand_ins.virtual.services.child import Child, exit_code, read_some, write_all
from device_runner.stand_ins.virtual.transport import Inbox, Stream

_FRAME = struct.Struct("<BI")
_MAX_WINDOW_SIZE_BYTES = 64
ENDLESS = "endless"
_NONSENSE = {
    "garbage": b"\xde\xad\xbe\xef not what was asked for \x00\xff",
    "truncated": _FRAME.pack(1, 1000) + b"the beginning of an ans",
    ENDLESS: _FRAME.pack(1, 4096) + b"all work and no play\n" * 195 + b"!",
}
_WINDOW_SIZE = re.compile(rb"(\d+)x(\d+),(\d+)x(\d+)")


async def shell(stream: Stream, command: str) -> None:
    """`shell:CMD`, and without a command the interactive shell."""
    await _start(stream, command, on_terminal=not command)


async def execute(stream: Stream, command: str) -> None:
    """`exec:CMD`: bytes in, bytes out."""
    await _start(stream, command)


async def shell_with_options(stream: Stream, argument: str) -> None:
    """`shell,OPTION,...:CMD` with options `v2`, `raw`, `pty` and `TERM=...`; unknown ones are ignored."""
    text, _, command = argument.partition(":")
    options = text.split(",")
    await _start(
        stream,
        command,
        on_terminal="pty" in options or (not command and "raw" not in options),
        term=next((option[5:] for option in options if option.startswith("TERM=")), ""),
        framed="v2" in options,
    )


async def _start(
    stream: Stream, command: str, *, on_terminal: bool = False, term: str = "", framed: bool = False
) -> None:
    phone = stream.transport.phone
    if phone.faults.now.shell_answers:
        await _answer_nonsense(stream, phone.faults.now.shell_answers)
        return
    if on_terminal:
        process = child.on_terminal(phone, command, term)
    else:
        process = child.on_sockets(phone, command, merged=not framed)
    await _run(stream, process, _Framed(stream, process) if framed else _Raw(stream, process))


async def _answer_nonsense(stream: Stream, kind: str) -> None:
    await stream.accept()
    await stream.write(_NONSENSE[kind])
    while kind == ENDLESS:
        await stream.write(_NONSENSE[kind])


async def _run(stream: Stream, running: Child, wire: _Raw | _Framed) -> None:
    exited = asyncio.ensure_future(exit_code(running.process))
    if not wire.framed:
        exited.add_done_callback(lambda _: running.hang_up_on_group())
    await stream.accept()
    feeding = asyncio.ensure_future(wire.feed())
    copying = asyncio.gather(*(_copy(fd, wire.output(i)) for i, fd in enumerate(running.outputs)))
    killable = wire.framed or running.on_terminal
    try:
        await asyncio.wait((feeding, copying) if killable else (copying,), return_when=asyncio.FIRST_COMPLETED)
        if not copying.done():
            running.hang_up()
    finally:
        feeding.cancel()
        copying.cancel()
        await asyncio.gather(feeding, copying, return_exceptions=True)
        running.close()  # also when the host left: who ignores SIGHUP must not wait for it at a full socket
    await wire.exit(await exited)  # a command that let go of all its streams is not hung up on


async def _copy(fd: int, write: Callable[[bytes], Awaitable[None]]) -> None:
    try:
        while data := await read_some(fd):
            await write(data)
    except BrokenPipeError:
        pass  # the host left


class _Raw:
    """Version 1: bytes as they are."""

    framed = False

    def __init__(self, stream: Stream, running: Child) -> None:
        self._stream = stream
        self._running = running

    async def feed(self) -> None:
        """Host's bytes to stdin; the end of the stream is an end of file, not a reason to kill."""
        while data := await self._stream.read():
            await _give(self._running, data)
        self._running.close_stdin()

    def output(self, _: int) -> Callable[[bytes], Awaitable[None]]:
        """Write what the command says on either stream."""
        return self._stream.write

    async def exit(self, code: int) -> None:
        """Version 1 cannot carry the exit code."""


class FrameId(IntEnum):
    """What a frame of version 2 holds."""

    STDIN = 0
    STDOUT = 1
    STDERR = 2
    EXIT = 3
    CLOSE_STDIN = 4
    WINDOW_SIZE = 5


class _Framed:
    """Version 2: `u8 id, u32 length, data`, in frames that need not fit the packets."""

    framed = True

    def __init__(self, stream: Stream, running: Child) -> None:
        self._stream = stream
        self._running = running
        self._inbox = Inbox(stream)

    async def feed(self) -> None:
        """Carry out the host's frames until it leaves."""
        with contextlib.suppress(EOFError):
            while True:
                await self._one(*_FRAME.unpack(await self._inbox.exactly(_FRAME.size)))

    async def _one(self, frame_id: int, length: int) -> None:
        if frame_id == FrameId.WINDOW_SIZE and length <= _MAX_WINDOW_SIZE_BYTES:
            if size := _WINDOW_SIZE.match(await self._inbox.exactly(length)):
                rows, columns, width_px, height_px = map(int, size.groups())
                self._running.resize(rows, columns, width_px, height_px)
            return
        while length:
            piece = await self._inbox.some(length)
            length -= len(piece)
            if frame_id == FrameId.STDIN:
                await _give(self._running, piece)
        if frame_id == FrameId.CLOSE_STDIN:
            self._running.close_stdin()

    def output(self, index: int) -> Callable[[bytes], Awaitable[None]]:
        """Write what the command says on stdout, 0, or stderr, 1."""
        frame_id = (FrameId.STDOUT, FrameId.STDERR)[index]

        async def write(data: bytes) -> None:
            await self._stream.write(_FRAME.pack(frame_id, len(data)) + data)

        return write

    async def exit(self, code: int) -> None:
        """Tell the exit code."""
        await self._stream.write(_FRAME.pack(FrameId.EXIT, 1) + bytes([code]))


async def _give(running: Child, data: bytes | memoryview) -> None:
    """Write to stdin; a command that no longer reads loses it, as in a pipe, without holding up the stream."""
    if running.stdin < 0:
        return
    try:
        await write_all(running.stdin, data)
    except OSError:
        running.close_stdin()
