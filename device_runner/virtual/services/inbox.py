"""A stream's pieces, read as if they were one run of bytes."""

from __future__ import annotations

from device_runner.virtual.transport import Stream


class Inbox:
    """Reads exact numbers of bytes. Raises EOFError at the end of the stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._rest = memoryview(b"")

    async def some(self, limit: int) -> memoryview:
        """At least one byte, at most `limit`, without a copy."""
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
