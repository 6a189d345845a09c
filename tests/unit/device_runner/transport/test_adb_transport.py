from __future__ import annotations

import hashlib
import os
import socket
import struct
import threading
from pathlib import Path

import pytest
from fake_adb import SERIAL, FakeAdbServer, fake_adb, read, receive_send, run_locally, store_locally

from device_runner.device import PushResult
from device_runner.failures import DeviceFull, DeviceLost
from device_runner.transport.adb_transport import AdbTransport, push

GOOD_DEVICE = {"shell,v2,raw": run_locally, "sync": store_locally}


class Parcel:
    """A file here, and the folder that stands for the device."""

    def __init__(self, tmp_path: Path, content: bytes = b"library") -> None:
        self.file = tmp_path / "a; rm -rf $HOME 'b'.so"
        self.file.write_bytes(content)
        self.sha256 = hashlib.sha256(content).hexdigest()
        self.folder = tmp_path / "on the device" / "files"
        self.destination = self.folder / f"{self.sha256}.so"

    def push(self, server: FakeAdbServer, timeout_s: float = 5) -> PushResult:
        return push(
            AdbTransport(SERIAL, server.port, "root"),
            self.file,
            self.sha256,
            str(self.destination),
            timeout_s=timeout_s,
        )

    @property
    def verified(self) -> Path:
        return self.destination.with_name(f"{self.destination.name}.verified")

    @property
    def names(self) -> list[str]:
        return [path.name for path in self.folder.iterdir()]


@pytest.fixture
def parcel(tmp_path: Path) -> Parcel:
    return Parcel(tmp_path)


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_a_new_file_arrives_whole_under_its_final_name(tmp_path: Path, size: int) -> None:
    parcel = Parcel(tmp_path, os.urandom(size))
    with fake_adb(GOOD_DEVICE) as server:
        assert parcel.push(server) == PushResult(str(parcel.destination), size)
    assert parcel.destination.read_bytes() == parcel.file.read_bytes()
    assert parcel.names == [parcel.destination.name]


def test_an_unchanged_file_costs_one_round_trip(parcel: Parcel) -> None:
    with fake_adb(GOOD_DEVICE) as server:
        parcel.push(server)
        server.requests.clear()
        assert parcel.push(server).sent_bytes == 0
        assert len(server.requests) == 1


def test_a_truncated_file_is_sent_again(parcel: Parcel) -> None:
    with fake_adb(GOOD_DEVICE) as server:
        parcel.push(server)
        parcel.destination.write_bytes(b"lib")
        assert parcel.push(server).sent_bytes == 7
    assert parcel.destination.read_bytes() == b"library"


def test_a_second_push_hashes_what_arrived_and_notes_the_boot(parcel: Parcel) -> None:
    with fake_adb(GOOD_DEVICE) as server:
        parcel.push(server)
        assert not parcel.verified.exists()
        assert parcel.push(server).sent_bytes == 0
    assert parcel.verified.read_text().strip()


@pytest.mark.parametrize("noted", [True, False])
def test_a_file_that_lost_its_content_before_this_boot_is_sent_again(parcel: Parcel, noted: bool) -> None:
    with fake_adb(GOOD_DEVICE) as server:
        parcel.push(server)
        if noted:
            parcel.verified.write_text("an earlier boot\n")
        parcel.destination.write_bytes(b"\0" * 7)
        assert parcel.push(server).sent_bytes == 7
    assert parcel.destination.read_bytes() == b"library"


def test_a_file_that_was_sent_again_is_hashed_again(parcel: Parcel) -> None:
    with fake_adb(GOOD_DEVICE) as server:
        parcel.push(server)
        parcel.push(server)
        parcel.destination.write_bytes(b"lib")
        parcel.push(server)
    assert not parcel.verified.exists()


def test_a_file_with_another_hash_than_promised_never_counts_as_present(parcel: Parcel) -> None:
    parcel.sha256 = "0" * 64
    with fake_adb(GOOD_DEVICE) as server:
        assert [parcel.push(server).sent_bytes for _ in range(3)] == [7, 7, 7]


def test_what_an_earlier_run_left_half_sent_is_removed(parcel: Parcel) -> None:
    parcel.folder.mkdir(parents=True)
    (parcel.folder / "0123.so.tmp.456").write_bytes(b"half")
    with fake_adb(GOOD_DEVICE) as server:
        parcel.push(server)
    assert not [name for name in parcel.names if ".tmp." in name]


@pytest.mark.parametrize("reason", ["write failed: No space left on device", "open failed: Read-only file system"])
def test_a_device_without_space_is_named_with_its_reason(parcel: Parcel, reason: str) -> None:
    def full(sock: socket.socket, _argument: str) -> None:
        receive_send(sock)
        sock.sendall(b"FAIL" + struct.pack("<I", len(reason)) + reason.encode())

    with fake_adb({**GOOD_DEVICE, "sync": full}) as server, pytest.raises(DeviceFull) as caught:
        parcel.push(server)
    assert reason in caught.value.message
    assert "rm -r" in caught.value.hint


def test_a_device_that_refuses_at_once_and_hangs_up_is_quoted_too(tmp_path: Path) -> None:
    def slam(sock: socket.socket, _argument: str) -> None:
        read(sock, 100)
        sock.sendall(b"FAIL" + struct.pack("<I", 23) + b"No space left on device")

    parcel = Parcel(tmp_path, os.urandom(8_000_000))
    with fake_adb({**GOOD_DEVICE, "sync": slam}) as server, pytest.raises((DeviceFull, DeviceLost)):
        parcel.push(server)


def test_what_arrives_short_does_not_get_the_name(parcel: Parcel) -> None:
    def lose(sock: socket.socket, _argument: str) -> None:
        path, data = receive_send(sock)
        path.write_bytes(data[:-1])
        sock.sendall(b"OKAY" + struct.pack("<I", 0))

    with fake_adb({**GOOD_DEVICE, "sync": lose}) as server, pytest.raises(DeviceLost, match="6 of 7 bytes arrived"):
        parcel.push(server)
    assert parcel.names == []


def test_a_cable_pulled_in_the_middle_is_a_lost_device(tmp_path: Path) -> None:
    def pulled(sock: socket.socket, _argument: str) -> None:
        read(sock, 1_000_000)

    parcel = Parcel(tmp_path, os.urandom(8_000_000))
    with fake_adb({**GOOD_DEVICE, "sync": pulled}) as server, pytest.raises(DeviceLost, match="broke"):
        parcel.push(server)


def test_a_device_that_stops_reading_is_bounded(tmp_path: Path) -> None:
    over = threading.Event()

    def frozen(sock: socket.socket, _argument: str) -> None:
        read(sock, 100)
        over.wait(10)

    parcel = Parcel(tmp_path, os.urandom(16_000_000))
    with fake_adb({**GOOD_DEVICE, "sync": frozen}) as server, pytest.raises(DeviceLost, match="did not answer"):
        parcel.push(server, timeout_s=0.5)
    over.set()


def test_progress_rises_to_the_whole(tmp_path: Path) -> None:
    parcel = Parcel(tmp_path, os.urandom(200_000))
    seen: list[tuple[int, int]] = []
    with fake_adb(GOOD_DEVICE) as server:
        adb = AdbTransport(SERIAL, server.port, "root")
        push(
            adb,
            parcel.file,
            parcel.sha256,
            str(parcel.destination),
            timeout_s=5,
            progress=lambda sent, total: seen.append((sent, total)),
        )
    assert seen[-1] == (200_000, 200_000)
    assert seen == sorted(seen)
