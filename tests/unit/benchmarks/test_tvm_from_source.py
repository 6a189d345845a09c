"""What a commit of TVM is built with, tried on a project with the targets and headers of TVM."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from asv.config import Config
from places import ROOT

INCLUDED = ROOT / "benchmarks/tvm_from_source/build.cmake"
PROJECT = """
cmake_minimum_required(VERSION 3.19)
project(tvm CXX)
if(DEFINED SKBUILD_PROJECT_VERSION_FULL)
  add_compile_definitions(TVM_VERSION="${SKBUILD_PROJECT_VERSION_FULL}")
endif()
add_library(tvm_objs OBJECT compiler.cc llvm.cc)
set_source_files_properties(llvm.cc PROPERTIES COMPILE_FLAGS -fno-rtti)
add_library(tvm_runtime_objs OBJECT runtime.cc)
target_include_directories(tvm_objs PRIVATE include)
"""
CLANG = next((name for name in ("clang++-19", "clang++") if shutil.which(name)), "")

needs_cmake = pytest.mark.skipif(
    not shutil.which("cmake") or not shutil.which("c++"), reason="apt-get install cmake g++"
)


def configured(folder: Path, compiler: str) -> dict[str, str]:
    """The command that compiles each file of the project."""
    (folder / "include/tvm/ffi/reflection").mkdir(parents=True)
    (folder / "include/tvm/ffi/reflection/registry.h").write_text("inline int registered() { return 1; }")
    (folder / "CMakeLists.txt").write_text(PROJECT)
    (folder / "compiler.cc").write_text("int compiled() { return registered(); }")
    (folder / "llvm.cc").write_text("int generated() { return 1; }")
    (folder / "runtime.cc").write_text("int ran() { return 1; }")
    told = [f"-DCMAKE_PROJECT_tvm_INCLUDE={INCLUDED}", f"-DCMAKE_CXX_COMPILER={compiler}"]
    told.append("-DSKBUILD_PROJECT_VERSION_FULL=0.28.dev7")  # as TVM's build does
    subprocess.run(
        ["cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *told],
        check=True,
        capture_output=True,
        timeout=60,
    )
    entries = json.loads((folder / "build/compile_commands.json").read_text())
    return {Path(entry["file"]).name: entry["command"] for entry in entries}


@needs_cmake
@pytest.mark.skipif(not CLANG, reason="apt-get install clang-19")
def test_clang_reads_the_headers_of_the_compiler_once(tmp_path: Path) -> None:
    commands = configured(tmp_path, CLANG)
    assert "-include-pch" in commands["compiler.cc"]
    assert "-fno-pch-timestamp" in commands["compiler.cc"]
    assert all("-include-pch" not in commands[name] for name in ("llvm.cc", "runtime.cc"))
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, capture_output=True, timeout=60)


@needs_cmake
def test_the_version_of_the_commit_is_in_no_command(tmp_path: Path) -> None:
    assert not [command for command in configured(tmp_path, "g++").values() if "TVM_VERSION" in command]


@needs_cmake
def test_another_compiler_is_told_nothing(tmp_path: Path) -> None:
    assert "cmake_pch" not in configured(tmp_path, "g++")["compiler.cc"]


def test_what_the_configuration_includes_is_there() -> None:
    build = Config.load(str(ROOT / "asv.tvm.conf.json")).build_command[-1]
    assert f"{{conf_dir}}/{INCLUDED.relative_to(ROOT)}" in build
