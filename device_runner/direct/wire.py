"""Messages between a session and its process: JSON with arrays and bytes beside it. Nothing is ever unpickled."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from device_runner.device import Array

_SIZE = struct.Struct("<Q")
Read = Callable[[int], bytes]
"""Gives exactly so many bytes, or raises EOFError."""


def packed(told: Any, arrays: Sequence[Array] = (), blob: bytes = b"") -> bytes:
    """A message: its size, then its parts, each with its size before it."""
    import numpy as np

    parts = [json.dumps(told).encode(), blob]
    for array in arrays:
        file = io.BytesIO()
        np.save(file, array, allow_pickle=False)
        parts.append(file.getvalue())
    body = b"".join(piece for part in parts for piece in (_SIZE.pack(len(part)), part))
    return _SIZE.pack(len(body)) + body


def unpacked(read: Read) -> tuple[Any, list[Array], bytes]:
    """The next message. Raises EOFError if there is none, ValueError for what is none."""
    import numpy as np

    (size,) = _SIZE.unpack(read(_SIZE.size))
    body, parts, at = memoryview(read(size)), [], 0
    while at < len(body):
        (length,) = _SIZE.unpack_from(body, at)
        at += _SIZE.size
        parts.append(bytes(body[at : at + length]))
        at += length
    told, blob, *arrays = parts
    return json.loads(told), [np.load(io.BytesIO(part), allow_pickle=False) for part in arrays], blob
