"""Push to the virtual phone, through the real adb server, with the faults that a cable and a full disk bring."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from waiting import FENCE_S

from device_runner.adb_device import AdbDevice
from device_runner.device import PushResult
from device_runner.failures import DeviceFull, DeviceLost, Failure, RigFailure
from device_runner.runtimes.phone import install
from device_runner.stand_ins.virtual import VirtualPhone
from device_runner.transport.adb_transport import AdbTransport

pytestmark = pytest.mark.device

SIZE_BYTES = 3_000_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "a; rm -rf $HOME.so"
    file.write_bytes(os.urandom(SIZE_BYTES))
    return file


def push(device: AdbDevice, file: Path) -> PushResult:
    return device.push(file, hashlib.sha256(file.read_bytes()).hexdigest(), timeout_s=FENCE_S)


def names(phone: VirtualPhone) -> list[str]:
    files = phone.home / "data/local/tmp/adreno-bench/files"
    return sorted(path.name for path in files.iterdir()) if files.exists() else []


def test_a_file_arrives_once(phone: VirtualPhone, device: AdbDevice, file: Path) -> None:
    first, second = push(device, file), push(device, file)
    assert (first.sent_bytes, second.sent_bytes) == (SIZE_BYTES, 0)
    assert first.path == second.path
    on_phone = phone.home / "data/local/tmp/adreno-bench/files" / Path(first.path).name
    assert on_phone.read_bytes() == file.read_bytes()


@pytest.mark.parametrize(
    ("faults", "failure"),
    [
        ({"full_after_bytes": 1_000_000}, DeviceFull),
        ({"send_error": "open failed: Read-only file system"}, DeviceFull),
        ({"send_error": "open failed: Permission denied"}, RigFailure),
        ({"drop_after_bytes": 1_000_000}, DeviceLost),
    ],
)
def test_what_breaks_a_push_is_named_and_leaves_no_file(
    phone: VirtualPhone, device: AdbDevice, file: Path, faults: dict[str, object], failure: type[Failure]
) -> None:
    before = names(phone)
    phone.fault(**faults)
    with pytest.raises(failure):
        push(device, file)
    left = set(names(phone)) - set(before)
    assert not [name for name in left if ".tmp." not in name]


def test_a_runtime_folder_is_brought_once_and_serves(device: AdbDevice, tmp_path: Path) -> None:
    (tmp_path / "tvm_rpc").write_text('#!/bin/sh\necho "from $LD_LIBRARY_PATH"\nexec tvm_rpc "$@"\n')
    (tmp_path / "libextra.so").write_bytes(b"library")
    assert isinstance(device.transport, AdbTransport)
    program = install(device.transport, tmp_path)
    phone = AdbDevice("phone", device.transport, program)
    with phone.session({}, timeout_s=FENCE_S) as session:
        assert f"\nfrom {device.transport.root}/runtime/" in session.log()
    assert install(device.transport, tmp_path) == program


def test_what_an_unplugged_push_left_is_removed_by_the_next(phone: VirtualPhone, device: AdbDevice, file: Path) -> None:
    stale = phone.home / "data/local/tmp/adreno-bench/files/0.so.tmp.1"
    push(device, file)
    stale.write_bytes(b"half")
    push(device, file)
    assert not stale.exists()
