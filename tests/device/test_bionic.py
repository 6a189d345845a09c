"""What phones are given, under a real Android system's loader and C library: `make test-bionic ROOT=FOLDER`.

The folder has `system/bin/linker64` and `system/lib64` of an arm64 system image. tvm-ffi is a library of nothing: it is
TVM's own that needs the NDK, and none of ours.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from compile_requests import request_for

from device_runner.runtimes.c_code import CCode
from device_runner.runtimes.cross_linker import FFI, linker
from device_runner.runtimes.probe import PROBE
from harness.compile.artifacts.artifact import LIBRARY
from harness.compile.artifacts.compile import compile_model
from harness.compile.models.sources import model_source
from harness.tools.bundle.runner import RUNNER

ROOT = "ADRENO_BENCH_TEST_BIONIC"
pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(not os.environ.get(ROOT), reason=f"run by `make test-bionic ROOT=FOLDER` ({ROOT})"),
]

ANDROID, ABI = "aarch64-linux-android", "arm64-v8a"
START = Path(__file__).parents[2] / "harness/tools/bundle/runner/src/start.c"
OPENS = """
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>
int main(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    const char* said = dlopen(words[i], RTLD_NOW | RTLD_GLOBAL) ? "opened" : dlerror();
    if (write(1, said, strlen(said)) + write(1, "\\n", 1) < 0) return 1;
  }
  return 0;
}
"""
NO_FFI = """
int TVMFFIFunctionGetGlobal(const void* name, void** found) { return *found = 0, 0; }
int TVMFFIFunctionCall(void) { return -1; }
int TVMFFIObjectDecRef(void* object) { return 0; }
int TVMFFIBytesFromByteArray(void) { return -1; }
int TVMFFIStringFromByteArray(void) { return -1; }
void TVMFFIErrorMoveFromRaised(void** error) { *error = 0; }
void TVMFFIErrorSetRaisedFromCStr(const char* kind, const char* said) {}
void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** said, int count) {}
int TVMFFIEnvGetStream(void) { return 0; }
int TVMFFIEnvModLookupFromImports(void) { return -1; }
"""
"""What our libraries call of tvm-ffi; there is nothing behind it."""


class Phone:
    """A folder in which programs and libraries for arm64 start as they do on the system in `ROOT`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def library(self, name: str, code: str, *flags: str) -> Path:
        """A library of some C."""
        made, object_file = self.folder / name, self.folder / f"{name}.o"
        (source := self.folder / f"{name}.c").write_text(code)
        chosen = linker(ANDROID)
        chosen.compile(source, object_file, ["-O1", "-fPIC", "-fno-sanitize=all", "-w"])
        linked = ["-shared", "-nostdlib", f"-Wl,-soname,{name}", *flags, "-o", str(made), str(object_file)]
        subprocess.run([*chosen.command, *linked], check=True)
        return made

    def run(self, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program by the system's loader."""
        seen = {"LD_LIBRARY_PATH": str(self.folder), **variables}
        words = [word for name, value in seen.items() for word in ("-E", f"{name}={value}")]
        qemu = ["qemu-aarch64-static", "-L", os.environ[ROOT], *words]
        return subprocess.run(
            [*qemu, *map(str, command)], capture_output=True, text=True, check=False, timeout=120, cwd=self.folder
        )

    def opened(self, *libraries: Path, **variables: str) -> list[str]:
        """What the loader says of each library, opened in this order by one process."""
        return self.run(self.folder / "opens", *libraries, **variables).stdout.splitlines()


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory) -> Phone:
    if shutil.which("qemu-aarch64-static") is None:
        pytest.skip("there is no qemu-aarch64-static: apt-get install qemu-user-static")
    folder = tmp_path_factory.mktemp("phone")
    (sources := folder / "sources").mkdir()
    (sources / "opens.c").write_text(OPENS)
    shutil.copy(START, sources)
    opens = CCode("opens", "a program that opens libraries", "opens", (sources,), ("-fPIE",), executable=True)
    for code in (opens, RUNNER, PROBE):
        shutil.copy(code.file(folder / "cache", ABI), folder)
    made = Phone(folder)
    made.library(FFI, NO_FFI)
    return made


def test_the_runner_starts_and_answers(phone: Phone) -> None:
    (phone.folder / "words").write_text('he said "x"\n')
    said = phone.run(phone.folder / RUNNER.name, "quote", "words")
    assert (said.returncode, said.stdout) == (0, r'"he said \u0022x\u0022\u000a"'), said.stderr
    assert phone.run(phone.folder / RUNNER.name).returncode == 2


def test_a_turn_without_a_runtime_is_told_by_the_process_that_watches_it(phone: Phone) -> None:
    (phone.folder / "turn").write_text("")
    said = phone.run(phone.folder / RUNNER.name, "who", "turn", "log")
    assert '"broken"' in said.stdout, said.stderr


def test_the_probe_is_opened(phone: Phone) -> None:
    assert phone.opened(phone.folder / PROBE.name) == ["opened"]


@pytest.mark.parametrize("path", ["opencl", "texture"])
@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_an_artifact_is_opened(phone: Phone, path: str, precision: str, tmp_path: Path) -> None:
    model = model_source("tiny").onnx_file(tmp_path)
    compile_model(request_for(model, path, precision, host_triple=ANDROID, limits=(16384, 16384, 2048)), tmp_path)
    assert phone.opened(tmp_path / LIBRARY) == ["opened"]


def test_a_library_that_lacks_what_another_has_needs_it_loaded_beforehand(phone: Phone) -> None:
    """As CLML's runtime lacks what the OpenCL runtime has (bionic: linker_namespaces.cpp)."""
    has = phone.library("libhas.so", "int held_by_another;")
    lacks = phone.library("liblacks.so", "extern int held_by_another; int* held = &held_by_another;", "-Wl,-z,undefs")
    first, second = phone.opened(has, lacks)
    assert first == "opened"
    assert 'cannot locate symbol "held_by_another"' in second
    assert phone.opened(lacks, LD_PRELOAD=str(has)) == ["opened"]


def test_mathematics_that_we_refuse_to_link_is_refused_by_the_loader_too(phone: Phone) -> None:
    lacks = phone.library("libexp10.so", "float exp10f(float); float f(float x) { return exp10f(x); }", "-Wl,-z,undefs")
    (said,) = phone.opened(lacks, LD_PRELOAD="libm.so")
    assert 'cannot locate symbol "exp10f"' in said
