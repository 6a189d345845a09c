"""File transfer: `sync:` versions 1 and 2. Source: AOSP SYNC.TXT, file_sync_protocol.h, daemon/file_sync_service.cpp.

A session is a row of requests, each a four-letter id and a path. Files are read and written on the event loop: pieces
are 64 KiB and land in the page cache, and a thread per piece would cost more than it saves.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from typing import NoReturn

from device_runner.stand_ins.virtual.services.receiver import NoFolder, NotCreated, Target, nowhere, open_target
from device_runner.stand_ins.virtual.transport import Inbox, Stream

MAX_PATH_BYTES = 1024
MAX_DATA_BYTES = 64 * 1024
_PIECES_PER_WRITE = 15  # with their headers they fit one packet of 1 MiB

_REQUEST = struct.Struct("<4sI")
_STAT_V1 = struct.Struct("<4s3I")
_STAT_V2 = struct.Struct("<4sI2Q4IQ3q")
_DENT_V1 = struct.Struct("<4s4I")
_DENT_V2_NAME = struct.Struct("<I")
_DRY_RUN = 0x80000000
_WORD_MASK = 0xFFFFFFFF
_ULONG_MAX = 0xFFFFFFFFFFFFFFFF


class _End(Exception):
    """This session is over."""


async def sync(stream: Stream, _: str) -> None:
    """Answer requests until QUIT, an error that ends a session, or the end of the stream."""
    await stream.accept()
    session = _Conversation(stream)
    try:
        while True:
            await session.one()
    except (_End, EOFError):
        pass


class _Conversation:
    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._inbox = Inbox(stream)
        self._faults = stream.transport.phone.faults
        self._mtime_s = 0
        self._handlers: dict[bytes, Callable[[str], Awaitable[None]]] = {
            b"STAT": self._stat_v1,
            b"STA2": self._stat,
            b"LST2": self._lstat,
            b"LIST": self._list_v1,
            b"LIS2": self._list_v2,
            b"SEND": self._send_v1,
            b"SND2": self._send_v2,
            b"RECV": self._recv_v1,
            b"RCV2": self._recv_v2,
        }

    async def one(self) -> None:
        """Answer one request. Raises _End or EOFError when there is no next one."""
        name, length = _REQUEST.unpack(await self._inbox.exactly(_REQUEST.size))
        if length > MAX_PATH_BYTES:
            await self._fail("path too long")
        path = os.fsdecode((await self._inbox.exactly(length)).partition(b"\0")[0])
        if name == b"QUIT":
            raise _End
        handler = self._handlers.get(name)
        if handler is None:
            await self._fail(f"unknown command {int.from_bytes(name, 'little'):08x}")
        await handler(path)

    @property
    def _ahead_s(self) -> int:
        return self._faults.now.clock_jump_s

    async def _fail(self, text: str) -> NoReturn:
        data = text.encode("utf-8", "surrogateescape")
        await self._stream.write(_REQUEST.pack(b"FAIL", len(data)) + data)
        raise _End

    async def _stat_v1(self, path: str) -> None:
        try:
            stat = os.lstat(path)
            words = self._words(stat)
        except (OSError, ValueError):
            words = (0, 0, 0)
        await self._stream.write(_STAT_V1.pack(b"STAT", *words))

    def _words(self, stat: os.stat_result) -> tuple[int, int, int]:
        mtime_s = int(stat.st_mtime) + self._ahead_s
        return stat.st_mode, stat.st_size & _WORD_MASK, mtime_s & _WORD_MASK

    async def _stat(self, path: str) -> None:
        await self._stream.write(_stat_v2(b"STA2", path, self._ahead_s, follow=True))

    async def _lstat(self, path: str) -> None:
        await self._stream.write(_stat_v2(b"LST2", path, self._ahead_s, follow=False))

    async def _list_v1(self, path: str) -> None:
        for entry in _names(path):
            try:
                stat = os.lstat(f"{path}/{entry}")
            except OSError:
                continue
            name = os.fsencode(entry)
            await self._stream.write(_DENT_V1.pack(b"DENT", *self._words(stat), len(name)) + name)
        await self._stream.write(_DENT_V1.pack(b"DONE", 0, 0, 0, 0))

    async def _list_v2(self, path: str) -> None:
        for entry in _names(path):
            name = os.fsencode(entry)
            entry_stat = _stat_v2(b"DNT2", f"{path}/{entry}", self._ahead_s, follow=False)
            await self._stream.write(entry_stat + _DENT_V2_NAME.pack(len(name)) + name)
        await self._stream.write(b"DONE" + bytes(_STAT_V2.size - 4 + _DENT_V2_NAME.size))

    async def _send_v1(self, argument: str) -> None:
        path, comma, text = argument.rpartition(",")
        if not comma:
            await self._fail("missing , in ID_SEND_V1")
        mode = _number(text)
        if mode > _ULONG_MAX:
            await self._fail("bad mode")
        await self._take(lambda: open_target(path, mode & _WORD_MASK))

    async def _send_v2(self, path: str) -> None:
        _, mode, flags = struct.unpack("<4sII", await self._inbox.exactly(12))
        if flags & ~_DRY_RUN:
            await self._fail(f"unknown flags: {flags & ~_DRY_RUN}")
        await self._take(nowhere if flags & _DRY_RUN else lambda: open_target(path, mode))

    async def _take(self, opened: Callable[[], AbstractContextManager[Target]]) -> None:
        data = self._data()
        try:
            if self._faults.now.read_only:
                raise NotCreated(errno.EROFS, os.strerror(errno.EROFS))
            if text := self._faults.now.send_error:
                raise OSError(errno.EIO, text)
            with opened() as target:
                async for piece in self._spoiled(data):
                    target.write(piece)
                target.finish(self._mtime_s - self._ahead_s)
        except (OSError, ValueError) as error:
            await self._refuse(error, data)
        await self._stream.write(_REQUEST.pack(b"OKAY", 0))

    async def _data(self) -> AsyncIterator[memoryview]:
        while True:
            name, word = _REQUEST.unpack(await self._inbox.exactly(_REQUEST.size))
            if name == b"DONE":
                self._mtime_s = word
                return
            if name != b"DATA":
                await self._fail("invalid data message")
            if word > MAX_DATA_BYTES:
                await self._fail("oversize data message")
            while word:
                piece = await self._inbox.some(word)
                word -= len(piece)
                yield piece

    async def _spoiled(self, data: AsyncIterator[memoryview]) -> AsyncIterator[memoryview]:
        """Yield the data as the injected faults let it through."""
        received = 0
        async for piece in data:
            received += len(piece)
            faults = self._faults.now
            if faults.drop_after_bytes is not None and received > faults.drop_after_bytes:
                self._stream.transport.drop()
                raise _End
            if faults.full_after_bytes is not None and received > faults.full_after_bytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if faults.bytes_per_s:
                await asyncio.sleep(len(piece) / faults.bytes_per_s)
            yield piece

    async def _refuse(self, error: Exception, data: AsyncIterator[memoryview]) -> NoReturn:
        """Say so at once, but hear the host out: it reads the answer only after its last piece."""
        text = f"{_doing(error)}: {_reason(error)}".encode()
        await self._stream.write(_REQUEST.pack(b"FAIL", len(text)) + text)
        async for _ in data:
            pass
        raise _End

    async def _recv_v2(self, path: str) -> None:
        _, flags = _REQUEST.unpack(await self._inbox.exactly(_REQUEST.size))
        if flags:
            await self._fail(f"unknown flags: {flags}")
        await self._recv_v1(path)

    async def _recv_v1(self, path: str) -> None:
        try:
            # Without O_NONBLOCK a pipe that nobody writes to would stop the daemon.
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except (OSError, ValueError) as error:
            await self._fail(f"open failed: {_reason(error)}")
        try:
            while parts := _data_packets(fd):
                await self._stream.write(b"".join(parts))
        except OSError as error:
            await self._fail(f"read failed: {_reason(error)}")
        finally:
            os.close(fd)
        await self._stream.write(_REQUEST.pack(b"DONE", 0))


def _number(text: str) -> int:
    """Return what C's `strtoul` reads at the beginning of a text, in the base that it is written in; 0 without any."""
    match = re.match(r"\s*\+?(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9][0-9]*))", text)
    if not match:
        return 0
    hexadecimal, octal, decimal = match.groups()
    return int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(decimal)


def _doing(error: Exception) -> str:
    """Return adbd's word for the step that failed."""
    if isinstance(error, NoFolder):
        return "secure_mkdirs() failed"
    return "couldn't create file" if isinstance(error, NotCreated) else "write failed"


def _data_packets(fd: int) -> list[bytes]:
    parts: list[bytes] = []
    while len(parts) < 2 * _PIECES_PER_WRITE and (piece := os.read(fd, MAX_DATA_BYTES)):
        parts += (_REQUEST.pack(b"DATA", len(piece)), piece)
    return parts


def _stat_v2(name: bytes, path: str, ahead_s: int, *, follow: bool) -> bytes:
    try:
        # A slash at the end matters to stat, and pathlib drops it.
        stat = os.stat(path, follow_symlinks=follow)  # noqa: PTH116
    except (OSError, ValueError) as error:
        code = error.errno if isinstance(error, OSError) and error.errno else errno.EINVAL
        return _STAT_V2.pack(name, code, *([0] * 10))
    return _STAT_V2.pack(
        name,
        0,
        stat.st_dev,
        stat.st_ino,
        stat.st_mode,
        stat.st_nlink,
        stat.st_uid,
        stat.st_gid,
        stat.st_size,
        int(stat.st_atime) + ahead_s,
        int(stat.st_mtime) + ahead_s,
        int(stat.st_ctime) + ahead_s,
    )


def _names(path: str) -> list[str]:
    try:
        with os.scandir(path) as entries:
            return [".", "..", *(entry.name for entry in entries)]
    except (OSError, ValueError):
        return []


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
