"""The probe for arm64 devices, compiled and linked for real."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from device_runner.failures import SetupMissing
from device_runner.runtimes import probe
from device_runner.runtimes.cross_linker import NDK_VARIABLE, TRIPLES
from device_runner.runtimes.phone.elf import read_elf
from harness.tools.shared.kernels import peaks

pytestmark = pytest.mark.rest


@pytest.fixture(autouse=True)
def _no_ndk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NDK_VARIABLE, raising=False)


@pytest.mark.device
@pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed (`make phones`)")
@pytest.mark.parametrize(
    ("abi", "libraries"), [("arm64-v8a", {"libc.so", "libdl.so"}), ("aarch64", {"libc.so.6", "libdl.so.2"})]
)
def test_it_needs_nothing_that_a_device_has_not(abi: str, libraries: set[str], sidecar_cache: Path) -> None:
    elf = read_elf(probe.library(sidecar_cache, abi))
    assert elf.machine == "EM_AARCH64"
    assert set(elf.needed) == {*libraries, "libtvm_ffi.so"}
    names = {"describe", "memory", "count_programs", "programs", "program_binaries", "watch_kernels", "launches"}
    assert elf.exported == {f"__tvm_ffi_{name}" for name in (*names, "batches")}
    meter = read_elf(peaks.module(sidecar_cache, abi))
    assert meter.exported == {"__tvm_ffi_peaks"}
    assert set(meter.needed) == set(elf.needed)
    assert sorted(TRIPLES) == ["aarch64", "arm64-v8a"]


def test_there_is_none_for_other_processors(tmp_path: Path) -> None:
    with pytest.raises(SetupMissing, match="no probe for devices with ABI armeabi-v7a"):
        probe.library(tmp_path, "armeabi-v7a")
