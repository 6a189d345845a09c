"""The adb packet: a 24-byte header of six little-endian words, then a payload. Pure functions, no I/O.

Source: AOSP packages/modules/adb, protocol.txt and adb.h.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

HEADER_BYTES = 24
MAX_PAYLOAD_BYTES = 1 << 20
MAX_CONNECT_PAYLOAD_BYTES = 4096
VERSION = 0x01000001
"""First version in which both sides leave `data_check` zero."""

_HEADER = struct.Struct("<6I")
_WORD_MASK = 0xFFFFFFFF


class ProtocolError(Exception):
    """The other side does not speak adb, or broke a rule of it. The connection is beyond repair."""


class AdbCommand(IntEnum):
    """The commands of the protocol, as ASCII words read in little-endian order."""

    CNXN = 0x4E584E43
    AUTH = 0x48545541
    STLS = 0x534C5453
    OPEN = 0x4E45504F
    OKAY = 0x59414B4F
    WRTE = 0x45545257
    CLSE = 0x45534C43


@dataclass(frozen=True)
class Header:
    """What precedes a payload. `arg0` and `arg1` mean what `command` says."""

    command: AdbCommand
    arg0: int
    arg1: int
    length: int
    check: int


def checksum(payload: bytes) -> int:
    """Byte sum of the payload, as versions before `VERSION` demand (the field is wrongly named crc32)."""
    return sum(payload) & _WORD_MASK


def encode_header(command: AdbCommand, arg0: int, arg1: int, payload: bytes = b"", *, check: bool = False) -> bytes:
    """Header of one packet; `check` fills in the checksum."""
    word = checksum(payload) if check else 0
    return _HEADER.pack(command, arg0, arg1, len(payload), word, command ^ _WORD_MASK)


def decode_header(data: bytes) -> Header:
    """Read 24 bytes. Raises ProtocolError for an unknown command, a wrong magic or an oversized payload."""
    if len(data) != HEADER_BYTES:
        raise ProtocolError(f"a header has {HEADER_BYTES} bytes, not {len(data)}")
    word, arg0, arg1, length, check, magic = _HEADER.unpack(data)
    if magic != word ^ _WORD_MASK:
        raise ProtocolError(f"magic {magic:#010x} does not fit command {word:#010x}")
    try:
        command = AdbCommand(word)
    except ValueError:
        raise ProtocolError(f"unknown command {word:#010x}") from None
    limit = MAX_CONNECT_PAYLOAD_BYTES if command in (AdbCommand.CNXN, AdbCommand.AUTH) else MAX_PAYLOAD_BYTES
    if length > limit:
        raise ProtocolError(f"{command.name} with {length} bytes; the limit is {limit}")
    return Header(command, arg0, arg1, length, check)
