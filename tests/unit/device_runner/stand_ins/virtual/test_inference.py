"""Inferences on the virtual phone that follow the clock which its heat allows."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from device_runner.stand_ins.virtual import phone
from device_runner.stand_ins.virtual.tvm_rpc.inference import BUSY_FILE, ClockedGpu


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClockedGpu:
    phone.prepare(tmp_path)
    monkeypatch.setenv("ANDROID_ROOT", str(tmp_path / "system"))
    return ClockedGpu()


def busy_us(home: Path) -> int:
    return int((home / BUSY_FILE).read_text())


def test_half_the_clock_takes_twice_the_time_and_is_twice_the_work(gpu: ClockedGpu, tmp_path: Path) -> None:
    def timed(*_: object) -> bytes:
        return struct.pack("@2d", 0.01, 0.02)

    assert struct.unpack("@2d", gpu.stretched(timed, 1)()) == (0.01, 0.02)
    before = busy_us(tmp_path)
    assert before == 30_000
    phone.edit(tmp_path, lambda state: state.changed({"gpu": {"thermal_level": 2}}))
    assert gpu.slowdown == 2.0
    assert struct.unpack("@2d", gpu.stretched(timed, 1)()) == (0.02, 0.04)
    assert busy_us(tmp_path) - before >= 60_000


def test_waiting_is_work(gpu: ClockedGpu, tmp_path: Path) -> None:
    gpu.wait(0.06)
    assert busy_us(tmp_path) >= 60_000


def test_a_phone_that_says_nothing_of_its_clock_is_at_its_fastest(gpu: ClockedGpu, tmp_path: Path) -> None:
    (tmp_path / "sys/class/kgsl/kgsl-3d0/max_clock_mhz").write_text("nothing\n")
    assert gpu.slowdown == 1.0
