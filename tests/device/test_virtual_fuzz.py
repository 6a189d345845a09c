"""Services that are fed nonsense end their stream and leave the phone well. In the sandbox, where it is harmless.

`reverse:` is fuzzed beside the daemon's wire: on the way through a real adb server, nonsense kills that server.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import FENCE_S

from device_runner.deadline import Deadline
from device_runner.stand_ins.virtual import sandbox, virtual_phone
from device_runner.transport.adb import Adb, AdbRefusal

pytestmark = [
    pytest.mark.rest,
    pytest.mark.device,
    pytest.mark.skipif(bool(sandbox.why_not()), reason="no sandbox here"),
]
ANSWER_DEADLINE_S = FENCE_S
few = settings(max_examples=40)

ROOT = b"/data/local/tmp/fuzz"
words = st.integers(0, 0xFFFFFFFF) | st.integers(0, 70_000)
paths = st.sampled_from([ROOT, ROOT + b"/a", ROOT + b"/a/b", b"/proc/self/mem", b"/dev/null", b"", b"\0", b"x" * 1024])
names = st.sampled_from([b"STAT", b"STA2", b"LST2", b"LIST", b"LIS2", b"SEND", b"SND2", b"RECV", b"RCV2", b"DATA"])
modes = st.sampled_from([b"", b",33188", b",41471", b",x", b",", b",99999999999999"])
honest = st.builds(
    lambda name, path, mode: name + struct.pack("<I", len(path + mode)) + path + mode, names, paths, modes
)
ends = st.sampled_from([b"DONE", b"QUIT", b"OKAY", b"FAIL"])
pieces = st.builds(lambda name, data: name + struct.pack("<I", len(data)) + data, names, st.binary(max_size=300))
lies = st.builds(
    lambda name, word, data: name + struct.pack("<I", word) + data, names | ends, words, st.binary(max_size=40)
)
sync_talk = st.lists(honest | pieces | lies | st.binary(max_size=20), max_size=8).map(b"".join)
frames = st.builds(
    lambda kind, word, data: struct.pack("<BI", kind, word) + data, st.integers(0, 9), words, st.binary(max_size=40)
)
shell_talk = st.lists(frames | st.binary(max_size=20), max_size=8).map(b"".join)


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adb]:
    with virtual_phone(tmp_path_factory.mktemp("phone")) as running:
        yield Adb(running.serial, running.adb_server)


def talk(phone: Adb, service: str, data: bytes) -> None:
    """Say `data` to a service and see that the stream ends and the phone is well."""
    with contextlib.suppress(AdbRefusal), phone.open(service, Deadline(ANSWER_DEADLINE_S)) as stream:
        stream.settimeout(ANSWER_DEADLINE_S)
        with contextlib.suppress(ConnectionError):
            stream.sendall(data)
            stream.shutdown(socket.SHUT_WR)
            while stream.recv(1 << 16):
                pass
    assert phone.shell(["echo", "well"], timeout_s=ANSWER_DEADLINE_S).stdout == "well\n"


@few
@given(sync_talk)
def test_sync(phone: Adb, data: bytes) -> None:
    talk(phone, "sync:", data)


@few
@given(shell_talk)
def test_shell_frames(phone: Adb, data: bytes) -> None:
    talk(phone, "shell,v2,raw:cat", data)


@few
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30))
def test_destinations(phone: Adb, destination: str) -> None:
    talk(phone, f"tcp:{destination}", b"")
    talk(phone, f"shell,{destination}", b"exit\n")
    talk(phone, f"localabstract:{destination}", b"")
