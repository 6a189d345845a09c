"""Which linker serves which device, and what a linked library must be."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from pathlib import Path

import pytest

from device_runner.device import Identity
from device_runner.failures import RigFailure, SetupMissing, Unsupported
from device_runner.runtimes import cross_linker
from device_runner.runtimes.cross_linker import check_library, linker
from harness.compile.artifacts.keys import linker_version
from harness.compile.artifacts.planner import host_triple

ANDROID = "aarch64-linux-android"


def no_ziglang(name: str) -> str:
    raise importlib.metadata.PackageNotFoundError(name)


@pytest.mark.parametrize(
    ("kind", "abi", "triple"),
    [
        ("phone", "arm64-v8a", ANDROID),
        ("phone", "aarch64", "aarch64-linux-gnu"),
        ("phone", "x86_64", None),
        ("phone", "", None),
        ("virtual", "arm64-v8a", None),
        ("local", "x86_64", None),
    ],
)
def test_host_code_is_for_the_devices_processor(
    kind: str, abi: str, triple: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert host_triple(Identity(kind, "serial", abi=abi)) == triple


def test_a_board_like_this_machine_needs_no_other_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert host_triple(Identity("phone", "serial", abi="aarch64")) is None
    assert host_triple(Identity("phone", "serial", abi="arm64-v8a")) == ANDROID


def test_a_processor_without_artifacts_is_named() -> None:
    with pytest.raises(Unsupported, match=r"ABI armeabi-v7a: use one of arm64-v8a, aarch64$"):
        host_triple(Identity("phone", "R58", abi="armeabi-v7a"))


def test_without_a_linker_the_hint_installs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(cross_linker.NDK_VARIABLE, raising=False)
    monkeypatch.setattr(importlib.metadata, "version", no_ziglang)
    with pytest.raises(SetupMissing, match=f"no linker for {ANDROID}") as caught:
        linker(ANDROID)
    assert "pip install ziglang" in caught.value.hint
    assert linker_version(ANDROID) == ""
    assert linker_version(None) == ""


def test_the_ndk_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clang = tmp_path / "toolchains/llvm/prebuilt/linux-x86_64/bin/clang"
    clang.parent.mkdir(parents=True)
    clang.touch()
    (tmp_path / "source.properties").write_text("Pkg.Desc = Android NDK\nPkg.Revision = 27.2.12479018\n")
    monkeypatch.setenv(cross_linker.NDK_VARIABLE, str(tmp_path))
    chosen = linker(ANDROID)
    assert chosen.version == "NDK 27.2.12479018"
    assert chosen.command == (str(clang), f"--target={ANDROID}", "-fuse-ld=lld")


def test_a_folder_that_is_no_ndk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cross_linker.NDK_VARIABLE, str(tmp_path))
    with pytest.raises(SetupMissing, match="holds no Android NDK"):
        linker(ANDROID)


def test_a_library_that_no_device_could_load_is_refused(tmp_path: Path) -> None:
    code, library = tmp_path / "code.c", tmp_path / "lib.so"
    code.write_text("extern void surprise(); void f(){ surprise(); }")
    flags = ["-shared", "-fPIC", "-nostdlib", "-Wl,-z,max-page-size=4096"]
    subprocess.run(["gcc", *flags, "-o", library, code], check=True)
    with pytest.raises(RigFailure, match=r"no device could load the linked lib\.so") as caught:
        check_library(library, ANDROID)
    for reason in ("it is ET_DYN for EM_X86_64", "pages of 4096 bytes", "nothing that it needs defines surprise"):
        assert reason in caught.value.message


def test_a_linker_that_leaves_half_a_library_is_caught(tmp_path: Path) -> None:
    (tmp_path / "lib.so").write_bytes(b"\x7fELF")
    with pytest.raises(RigFailure, match=r"the linked lib\.so is truncated or damaged"):
        check_library(tmp_path / "lib.so", ANDROID)
