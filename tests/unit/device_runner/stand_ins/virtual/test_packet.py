from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from device_runner.stand_ins.virtual.packet import (
    HEADER_BYTES,
    MAX_PAYLOAD_BYTES,
    AdbCommand,
    ProtocolError,
    checksum,
    decode_header,
    encode_header,
)

words = st.integers(0, 0xFFFFFFFF)


@given(
    command=st.sampled_from(AdbCommand), arg0=words, arg1=words, payload=st.binary(max_size=4096), check=st.booleans()
)
def test_a_header_reads_as_it_was_written(
    command: AdbCommand, arg0: int, arg1: int, payload: bytes, check: bool
) -> None:
    header = decode_header(encode_header(command, arg0, arg1, payload, check=check))
    assert (header.command, header.arg0, header.arg1, header.length) == (command, arg0, arg1, len(payload))
    assert header.check == (sum(payload) if check else 0)


@given(st.binary(max_size=2 * HEADER_BYTES))
def test_garbage_is_a_protocol_error_and_nothing_else(data: bytes) -> None:
    try:
        header = decode_header(data)
    except ProtocolError:
        return
    assert len(data) == HEADER_BYTES
    assert header.length <= MAX_PAYLOAD_BYTES


@given(st.sampled_from(AdbCommand), st.integers(0, 8 * HEADER_BYTES - 1))
def test_one_wrong_bit_in_command_or_magic_is_noticed(command: AdbCommand, bit: int) -> None:
    data = bytearray(encode_header(command, 1, 2))
    data[bit // 8] ^= 1 << bit % 8
    if bit // 8 in range(4, 20):
        return  # arguments, length and checksum are not covered
    with pytest.raises(ProtocolError):
        decode_header(bytes(data))


def test_the_bytes_are_those_of_protocol_txt() -> None:
    header = encode_header(AdbCommand.CNXN, 0x01000001, 1 << 20, b"host::", check=True)
    assert header[:4] == b"CNXN"
    assert struct.unpack("<I", header[20:])[0] == 0x4E584E43 ^ 0xFFFFFFFF
    assert struct.unpack("<I", header[16:20])[0] == checksum(b"host::") == sum(b"host::")


@pytest.mark.parametrize(("command", "length"), [(AdbCommand.CNXN, 4097), (AdbCommand.WRTE, MAX_PAYLOAD_BYTES + 1)])
def test_a_payload_over_the_limit_is_refused(command: AdbCommand, length: int) -> None:
    data = bytearray(encode_header(command, 0, 0))
    data[12:16] = struct.pack("<I", length)
    with pytest.raises(ProtocolError, match="limit"):
        decode_header(bytes(data))
