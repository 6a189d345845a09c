"""The steps of docs/tutorial/first-phone.md, as they are written, with the virtual phone in place of a phone.

The sources of TVM, CMake and the NDK are stand-ins: a build that leaves a runtime for phones where a real one does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from page_blocks import blocks
from phone_libraries import runtime_in
from places import ROOT
from waiting import LONG_S

from harness.tools.runtime.check import host_interface

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.long, pytest.mark.usefixtures("warm_driver")]

PAGE = (ROOT / "docs/tutorial/first-phone.md").read_text(encoding="utf-8")
CMAKE = """#!/bin/sh
echo cmake "$@" >>"$HOME/log"
[ "$1" = --build ] && mkdir -p "$2/lib" && cp "$RUNTIME"/* "$2/lib"
exit 0
"""
GIT = """#!/bin/sh
echo git "$@" >>"$HOME/log"
mkdir -p tvm
"""


def program(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.write_text(text)
    file.chmod(0o755)


@pytest.fixture
def environment(tmp_path: Path, cache: Path) -> dict[str, str]:
    """A home with an NDK, and the programs that the page takes from elsewhere."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program(programs, "cmake", CMAKE)
    program(programs, "git", GIT)
    program(programs, "adreno-bench", f"#!{sys.executable}\nfrom harness.cli import main\nmain()\n")
    ndk = tmp_path / "Android/Sdk/ndk/28.0.13004108/toolchains/llvm/prebuilt/linux-x86_64/sysroot/usr/lib"
    (ndk / "aarch64-linux-android").mkdir(parents=True)
    runtime = runtime_in(tmp_path / "runtime", interface=host_interface())
    (ndk / "aarch64-linux-android/libc++_shared.so").write_bytes((runtime / "libtvm_ffi.so").read_bytes())
    path = f"{programs}:{os.environ['PATH']}"
    places = {"HOME": str(tmp_path), "RUNTIME": str(runtime), "CLML_SDK": str(tmp_path), "PATH": path}
    return {**os.environ, **places, "ADRENO_BENCH_CACHE": str(cache), "PYTHONPATH": str(ROOT)}


@pytest.mark.timeout(3600)
def test_the_steps_lead_to_a_table_in_the_folder_where_they_began(tmp_path: Path, environment: dict[str, str]) -> None:
    here = tmp_path / "suite"
    here.mkdir()
    first, connect, *rest = blocks(PAGE)
    script = "\n".join([first, connect, *blocks(PAGE, "sh"), *rest])
    done = subprocess.run(
        ["bash", "-e", "-c", script.replace("SERIAL", "virtual")],
        cwd=here,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=6 * LONG_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert (here / "phone/tvm_rpc").is_file()
    assert (here / "phone/libc++_shared.so").is_file()
    assert (here / "records.jsonl").is_file()
    rows = re.findall(r"^(\w+) +(\w+) +float32 +untuned +ok\b", done.stdout, re.MULTILINE)
    assert ("tiny", "opencl") in rows
    assert ("squeezenet1_1", "opencl") in rows
    built = [line for line in (tmp_path / "log").read_text().splitlines() if line.startswith("cmake --build")]
    assert len(built) == 2  # with CLML it is built again, not only configured
