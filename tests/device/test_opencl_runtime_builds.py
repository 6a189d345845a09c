"""The OpenCL runtime's own tests again: against other releases of TVM, under AddressSanitizer and under oclgrind."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import LONG_S

from device_runner.runtimes.opencl import sidecar

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.long]

TESTS = Path(__file__).with_name("test_opencl_runtime.py")
RELEASES = [("0.25.0.post1", "0.1.12"), pytest.param(("0.26.0", "0.1.13.post3"), marks=pytest.mark.long)]
"""Releases besides the installed one, with a tvm-ffi that each works with (apache/tvm's metadata only says `>=`)."""


def run_tests(*options: str, under: tuple[str, ...] = (), **environment: str) -> subprocess.CompletedProcess[str]:
    command = [*under, sys.executable, "-m", "pytest", str(TESTS), "-q", "-rA", *options]
    return subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=LONG_S, check=False
    )


def passed(done: subprocess.CompletedProcess[str]) -> int:
    """How many tests passed, if none failed."""
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    found = re.search(r"(\d+) passed", done.stdout)
    return int(found[1]) if found else 0


@pytest.fixture(params=RELEASES, ids=["oldest", "between"])
def release(request: pytest.FixtureRequest, pytestconfig: pytest.Config) -> Path:
    """A folder with another TVM, kept for the next run."""
    tvm, ffi = request.param
    folder = pytestconfig.cache.mkdir("tvm-releases") / f"{tvm}-{ffi}"
    if not folder.exists():
        scratch = folder.with_suffix(".part")
        shutil.rmtree(scratch, ignore_errors=True)
        pins = [f"apache-tvm=={tvm}", f"apache-tvm-ffi=={ffi}"]
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--target", str(scratch)]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", *options, *pins],
            capture_output=True,
            text=True,
            timeout=LONG_S,
            check=False,
        )
        if done.returncode != 0:
            pytest.skip(f"TVM {tvm} cannot be had here: {done.stderr.strip()[-300:]}")
        (scratch / "tvm" / "lib" / "libtvm_compiler.so").unlink()  # 250 MB that these tests do not need
        scratch.rename(folder)
    return folder


def test_it_builds_and_works_with_other_releases(release: Path) -> None:
    """What TVM compiles differs between releases; how the runtime is called does not."""
    selected = ("-k", "not compiled and not thousand")
    assert passed(run_tests(*selected, PYTHONPATH=str(release), TVM_USE_RUNTIME_LIB="1")) > 30


@pytest.mark.long
def test_address_sanitizer_finds_nothing(pytestconfig: pytest.Config) -> None:
    library = sidecar(pytestconfig.cache.mkdir("sidecar"), extra_flags=["-fsanitize=address", "-O0"])
    assert b"__asan_report" in library.read_bytes()
    # The interpreter is not instrumented, so the sanitizer must come first, and with it the library whose __cxa_throw
    # it wraps. Leaks are not looked for: PoCL, LLVM and the interpreter keep much until the end, and this runtime too.
    preload = " ".join(gcc_file(name) for name in ("libasan.so", "libstdc++.so"))
    done = run_tests(SIDECAR=str(library), LD_PRELOAD=preload, ASAN_OPTIONS="detect_leaks=0")
    assert passed(done) > 30


def gcc_file(name: str) -> str:
    command = [os.environ.get("CXX") or "g++", f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()


@pytest.fixture
def oclgrind() -> str:
    found = shutil.which("oclgrind")
    if found is None:
        pytest.skip("oclgrind is not installed: apt-get install oclgrind")
    return found


def test_oclgrind_finds_no_access_out_of_bounds(oclgrind: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    library = sidecar(pytestconfig.cache.mkdir("sidecar"))
    log = tmp_path / "log"
    elsewhere = "between_devices or impossible_launch or kernel_time or driver"  # needs PoCL, or other drivers, or long
    done = run_tests("-k", f"not ({elsewhere})", under=(oclgrind, "--log", str(log)), SIDECAR=str(library))
    assert passed(done) > 30
    assert "Invalid" not in log.read_text()


def test_oclgrind_would_find_an_access_out_of_bounds(
    oclgrind: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    library = sidecar(pytestconfig.cache.mkdir("sidecar"))
    script = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(TESTS.parent)!r})
from test_opencl_runtime import module_bytes
from device_runner.runtimes.opencl import load
load(Path({str(library)!r}))
import ctypes, tvm, tvm_ffi
source = "__kernel void wild(__global float* a) {{ a[5000] = 1; }}"
module = tvm_ffi.get_global_func("ffi.Module.load_from_bytes.opencl")(module_bytes({{"wild": source}}, ["handle"], []))
values = tvm.runtime.empty((4,), "float32", tvm.opencl())
module["wild"](ctypes.c_void_p(values.data_ptr()))
tvm.opencl().sync()
"""
    log = tmp_path / "log"
    command = [oclgrind, "--log", str(log), sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LONG_S, check=False)
    assert "Invalid write" in log.read_text(), done.stderr
