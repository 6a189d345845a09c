"""Artifacts for arm64 devices, compiled and linked for real; whether their code runs is `test_arm64_run`'s question."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from compile_requests import request_for
from onnx import helper, numpy_helper

import adreno_bench as bench
from device_runner.failures import RigFailure
from device_runner.runtimes.cross_linker import NDK_VARIABLE, Linker, check_library, linker
from device_runner.runtimes.phone.elf import read_elf
from harness.compile.artifacts.artifact import LIBRARY
from harness.compile.artifacts.compile import compile_model
from harness.compile.models.sources import model_source

pytestmark = [
    pytest.mark.rest,
    pytest.mark.device,
    pytest.mark.skipif(find_spec("ziglang") is None, reason="ziglang is not installed (`make phones`)"),
]

ANDROID, BOARD = "aarch64-linux-android", "aarch64-linux-gnu"


@pytest.fixture(autouse=True)
def _no_ndk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(NDK_VARIABLE, raising=False)


def compiled(chosen: Linker, folder: Path, code: str) -> Path:
    """An object file for the device's processor."""
    source, made = folder / "code.c", folder / "code.o"
    source.write_text(code)
    subprocess.run([*chosen.command, "-c", "-O2", "-fPIC", "-o", made, source], check=True)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("path", [pytest.param("opencl", marks=pytest.mark.long), "texture"])
@pytest.mark.parametrize("precision", [pytest.param("float32", marks=pytest.mark.long), "float16"])
def test_tiny_for_a_phone(path: str, precision: str, tmp_path: Path) -> None:
    model = model_source("tiny").onnx_file(tmp_path)
    made = compile_model(
        request_for(model, path, precision, host_triple=ANDROID, limits=(16384, 16384, 2048)), tmp_path
    )
    elf = check_library(tmp_path / LIBRARY, ANDROID)
    assert made.library == LIBRARY
    assert (elf.machine, elf.bits, elf.page_bytes) == ("EM_AARCH64", 64, 16384)
    assert elf.hash_tables == {"DT_HASH", "DT_GNU_HASH"}
    assert "libtvm_ffi.so" in elf.needed
    assert "__tvm_ffi__library_bin" in elf.exported
    assert all(symbol.startswith("TVMFFI") for symbol in elf.undefined)


@pytest.mark.slow
def test_python_builds_for_a_phone_that_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))
    (library,) = bench.build("tiny", paths="opencl", abi="arm64-v8a", suite=tmp_path / "none.toml", progress=False)
    assert (library.case, library.outcome, library.devices) == ("tiny-opencl-float32-untuned", "ok", 1)
    assert library.file
    assert read_elf(library.file).machine == "EM_AARCH64"


@pytest.mark.slow
@pytest.mark.parametrize("triple", [ANDROID, BOARD])
def test_a_network_without_code_for_the_host_is_linked(triple: str, tmp_path: Path) -> None:
    weights = numpy_helper.from_array(np.ones((4, 3, 3, 3), np.float32), "w")
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4)
    shapes = [helper.make_tensor_value_info(name, 1, [1, size, 8, 8]) for name, size in (("x", 3), ("y", 4))]
    file = tmp_path / "whole.onnx"
    onnx.save(helper.make_model(helper.make_graph([node], "whole", shapes[:1], shapes[1:], [weights])), file)
    made = compile_model(request_for(file, "clml", "float32", host_triple=triple), tmp_path)
    assert made.facts["operators_offloaded"] == made.facts["operators"] == 1
    assert "__tvm_ffi__library_bin" in check_library(tmp_path / LIBRARY, triple).exported


@pytest.mark.parametrize(
    ("triple", "libraries"), [(ANDROID, {"libc.so", "libm.so"}), (BOARD, {"libc.so.6", "libm.so.6"})]
)
def test_each_symbol_names_its_library(triple: str, libraries: set[str], tmp_path: Path) -> None:
    chosen = linker(triple)
    code = """
    float expf(float); void *memcpy(void *, const void *, unsigned long); void TVMFFIErrorSetRaisedFromCStr();
    float f(float x, void *p, void *q) { memcpy(p, q, 100000); TVMFFIErrorSetRaisedFromCStr(); return expf(x); }
    """
    made = compiled(chosen, tmp_path, code)
    library = tmp_path / "a; rm -rf $HOME.so"
    chosen.link([made], library, triple)
    elf = read_elf(library)
    assert set(elf.needed) == {*libraries, "libtvm_ffi.so"}
    assert elf.undefined == {"expf", "memcpy", "TVMFFIErrorSetRaisedFromCStr"}


def test_a_symbol_that_no_device_defines_is_named(tmp_path: Path) -> None:
    chosen = linker(ANDROID)
    made = compiled(chosen, tmp_path, "void surprise(); void f() { surprise(); }")
    with pytest.raises(RigFailure, match=r"surprise|could not make"):
        chosen.link([made], tmp_path / "lib.so", ANDROID)


def test_mathematics_that_android_lacks_is_refused_for_phones_alone(tmp_path: Path) -> None:
    made = compiled(linker(ANDROID), tmp_path, "float exp10f(float); float f(float x) { return exp10f(x); }")
    with pytest.raises(RigFailure, match=r"exp10f|could not make") as caught:
        linker(ANDROID).link([made], tmp_path / "lib.so", ANDROID)
    assert "exp10f" in f"{caught.value} {caught.value.evidence}"
    linker(BOARD).link([made], tmp_path / "lib.so", BOARD)


def test_linking_the_same_gives_the_same_bytes(tmp_path: Path) -> None:
    chosen = linker(ANDROID)
    made = compiled(chosen, tmp_path, "int f(int x) { return x + 1; }")
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        chosen.link([made], tmp_path / folder / "lib.so", ANDROID)
    assert (tmp_path / "one/lib.so").read_bytes() == (tmp_path / "two/lib.so").read_bytes()


def test_what_the_linker_says_is_the_evidence(tmp_path: Path) -> None:
    chosen = linker(ANDROID)
    (tmp_path / "broken.o").write_bytes(b"\x7fELF")
    with pytest.raises(RigFailure, match=r"object file of TVM's is truncated"):
        chosen.link([tmp_path / "broken.o"], tmp_path / "lib.so", ANDROID)
    absent = Linker("none", (sys.executable, "-c", "import sys; sys.exit('no such flag')"))
    made = compiled(chosen, tmp_path, "int f(int x) { return x + 1; }")
    with pytest.raises(RigFailure, match="none could not make") as caught:
        absent.link([made], tmp_path / "lib.so", ANDROID)
    assert "no such flag" in caught.value.evidence
