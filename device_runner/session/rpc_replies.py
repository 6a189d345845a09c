"""What a TVM RPC server may say to its client, checked before the client reads it.

TVM's client trusts its server. It reserves as much memory as a packet claims, reads past the end of a short answer, and
takes pointers into its own memory. It even serves: both ends run the same code, and a server that sends the first
packet of a client may call every function of the client's process (TVM 0.27, src/runtime/rpc/rpc_endpoint.cc). So the
relay holds a device to what an honest server sends: one answer to each request, in one of the forms below.

Source: rpc_endpoint.cc, rpc_module.cc, rpc_local_session.cc and minrpc/rpc_reference.h in src/runtime/rpc, and
tvm/ffi/c_api.h for the types. Words are little-endian. Imports nothing but the standard library.
"""

from __future__ import annotations

import math
import struct
from collections import deque
from collections.abc import Generator

MAGIC = 0xFF271
REFUSALS = (MAGIC + 1, MAGIC + 2)
"""What a server says in place of the magic word if a client's key is taken or wrong."""
KEY_LIMIT_BYTES = 4096
TEXT_LIMIT_BYTES = 64 << 20
"""Limit of a text or of bytes: a tuning file and a network's program binaries have a few MiB."""
TENSOR_LIMIT_BYTES = 256 << 20
RANK_LIMIT = 16

SHUTDOWN, CALL, RETURN, EXCEPTION, COPY_FROM_REMOTE, COPY_ACK = 1, 3, 4, 5, 6, 8
"""Packets (RPCCode)."""
NONE, INTEGER, POINTER, TENSOR, RAW_TEXT, RAW_BYTES = 0, 1, 4, 7, 8, 9
"""Types (TVMFFITypeIndex)."""
WORDS = (INTEGER, 2, 3, POINTER, 5, 6)
"""Types of 8 bytes; the others are truth values, floats, number formats and devices."""
WRAPPERS, STRINGS = (11, 12, 65, 66), (65, 66)
"""Types of objects that are text or bytes, before and after they are wrapped."""

Rule = Generator[int, bytes, None]
"""Yields how many bytes it reads next, at most, and is sent at least one of them."""
Fields = Generator[int, bytes, tuple[int, ...]]


class Nonsense(Exception):
    """What no server of TVM's sends, in a few words."""


class Reader:
    """Follows one direction of a connection by a rule."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self._most = next(rule)

    def check(self, data: bytes) -> None:
        """Read what comes next. Raises `Nonsense`; nothing of `data` should then be passed on."""
        at = 0
        while at < len(data):
            piece = data[at : at + self._most]
            at += len(piece)
            self._most = self._rule.send(piece)


class RpcConversation:
    """One connection: the `requests` of our own TVM, and the `replies` of a server, which must fit them."""

    def __init__(self) -> None:
        self._asked: deque[tuple[int, int]] = deque()
        """Each request without a reply yet: its code, and the last of its words, by which a copy tells its size."""
        self._left = 0
        """Bytes of the reply that is being read."""
        self.requests = Reader(self._requests())
        self.replies = Reader(self._replies())

    def _requests(self) -> Rule:
        _, key_bytes = yield from _words("<ii")
        yield from _skip(key_bytes)
        while True:
            size, code = yield from _words("<Qi")
            last_word = min(size - 4, 8)
            yield from _skip(size - 4 - last_word)
            last = int.from_bytes((yield from _take(last_word)), "little")
            if code != SHUTDOWN:
                self._asked.append((code, last))

    def _replies(self) -> Rule:
        (magic,) = yield from _words("<i")
        if magic in REFUSALS:
            yield 1
        if magic != MAGIC:
            raise Nonsense("another protocol than that of TVM RPC servers")
        (key_bytes,) = yield from _words("<i")
        if not 0 <= key_bytes <= KEY_LIMIT_BYTES:
            raise Nonsense(f"a key of {key_bytes} bytes")
        yield from _skip(key_bytes)
        while True:
            (size,) = yield from _words("<Q")
            if not self._asked:
                raise Nonsense("an answer without a question")
            if not 4 <= size <= TENSOR_LIMIT_BYTES + 4:
                raise Nonsense(f"a packet of {size} bytes")
            self._left = size
            yield from self._reply(*self._asked.popleft())
            if self._left:
                raise Nonsense(f"a packet with {self._left} bytes too many")

    def _reply(self, asked: int, copied_bytes: int) -> Rule:
        (code,) = yield from self._fields("<i")
        if code == COPY_ACK and asked == COPY_FROM_REMOTE and self._left == copied_bytes:
            yield from self._rest(copied_bytes)
        elif code == EXCEPTION or (code == RETURN and asked not in (CALL, COPY_FROM_REMOTE)):
            yield from self._count(1)
            yield from self._value()
        elif code == RETURN and asked == CALL:
            count = yield from self._count(2, 3)
            if (yield from self._fields("<iq"))[0] != INTEGER:
                raise Nonsense("a result without a type")
            yield from self._value() if count == 2 else self._tensor()
        else:
            raise Nonsense(f"a packet of kind {code} in answer to one of kind {asked}")

    def _count(self, *allowed: int) -> Generator[int, bytes, int]:
        (count,) = yield from self._fields("<i")
        if count not in allowed:
            raise Nonsense(f"an answer of {count} values")
        return count

    def _value(self) -> Rule:
        (kind,) = yield from self._fields("<i")
        if kind in WRAPPERS:
            (kind,) = yield from self._fields("<i")
            kind = RAW_TEXT if kind in STRINGS else -1
        if kind in (RAW_TEXT, RAW_BYTES):
            (size,) = yield from self._fields("<Q")
            if size > TEXT_LIMIT_BYTES:
                raise Nonsense(f"a text of {size} bytes")
            yield from self._rest(size)
        elif kind in WORDS:
            yield from self._rest(8)
        elif kind != NONE:
            raise Nonsense("a value of a type that servers do not send")

    def _tensor(self) -> Rule:
        """Read a tensor's description and the handle by which it is freed."""
        kind, _, _, _, rank, _, bits, lanes = yield from self._fields("<iQiiiBBH")
        if kind != TENSOR or not 0 <= rank <= RANK_LIMIT:
            raise Nonsense(f"a tensor of type {kind} and {rank} dimensions")
        shape = yield from self._fields(f"<{rank}q")
        size = math.prod(shape) * -(-bits * lanes // 8)
        if min(shape, default=0) < 0 or size > TENSOR_LIMIT_BYTES:
            raise Nonsense(f"a tensor of {size} bytes")
        _, kind, _ = yield from self._fields("<QiQ")
        if kind != POINTER:
            raise Nonsense("a tensor without a handle")

    def _fields(self, form: str) -> Fields:
        self._spend(struct.calcsize(form))
        return (yield from _words(form))

    def _rest(self, size: int) -> Rule:
        self._spend(size)
        yield from _skip(size)

    def _spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise Nonsense("a packet shorter than its content")


def _words(form: str) -> Fields:
    return struct.unpack(form, (yield from _take(struct.calcsize(form))))


def _take(size: int) -> Generator[int, bytes, bytes]:
    data = b""
    while len(data) < size:
        data += yield size - len(data)
    return data


def _skip(size: int) -> Rule:
    while size > 0:
        size -= len((yield size))
