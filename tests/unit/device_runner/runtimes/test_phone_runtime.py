"""What is accepted as a runtime for phones, how it is refused, and how it is kept.

The files are small shared libraries made by this host's compiler and marked as AArch64: no check runs their code.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from phone_libraries import ANDROID, EM_X86_64, FFI, HOST, OPENCL, PROGRAM, RUNTIME, link, mark, runtime_in
from typer.testing import CliRunner

from device_runner import installed_tvm
from device_runner.failures import RigFailure, SetupMissing
from device_runner.runtimes.phone import RuntimeStore
from device_runner.runtimes.phone.elf import BadElf, read_elf
from device_runner.runtimes.phone.store import UnknownRuntime
from harness.tools.runtime.check import RuntimeRefused, examine, host_interface, interface


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("good")
    runtime_in(folder)
    link(folder / "tvm_rpc", PROGRAM, ["libtvm_runtime.so", "liblog.so"], ANDROID)
    return folder


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "build; rm -rf $HOME"))


def refusal(folder: Path) -> str:
    with pytest.raises(RuntimeRefused) as caught:
        examine(folder, HOST)
    assert caught.value.outcome == "usage"
    return "\n".join(caught.value.reasons)


def test_a_whole_build_is_accepted(folder: Path) -> None:
    (folder / "README").write_text("not ours")
    (folder / "libtvm_compiler.so").write_text("not needed on a phone")
    found = examine(folder, HOST)
    assert found.abi == "arm64-v8a"
    assert [f.name for f in found.files] == [
        "libtvm_ffi.so",
        "libtvm_runtime.so",
        "libtvm_runtime_opencl.so",
        "tvm_rpc",
    ]
    assert found.preload == ("libtvm_runtime_opencl.so",)
    assert [note for note in found.notes if "exact release is not written" in note]
    assert [note for note in found.notes if "no CLML" in note]


def test_what_the_program_needs_is_not_preloaded(folder: Path) -> None:
    link(folder / "tvm_rpc", PROGRAM, ["libtvm_runtime.so", "libtvm_runtime_opencl.so"], ANDROID)
    assert examine(folder, HOST).preload == ()


def test_further_libraries_come_along(folder: Path) -> None:
    link(folder / "libc++_shared.so", "void std(){}")
    link(folder / "libother.so", "void other(){}")
    link(folder / "libtvm_ffi.so", FFI, ["libother.so"])
    assert {"libc++_shared.so", "libother.so"} <= {file.name for file in examine(folder, HOST).files}


def test_a_linux_board_is_told_from_a_phone(folder: Path) -> None:
    for name, code in {"libtvm_ffi.so": FFI, "libtvm_runtime.so": RUNTIME}.items():
        link(folder / name, code, ["libc.so.6"])
    link(folder / "tvm_rpc", PROGRAM, ["libtvm_runtime.so"], ["-Wl,--dynamic-linker=/lib/ld-linux-aarch64.so.1"])
    assert examine(folder, HOST).abi == "aarch64"


def test_a_build_for_a_desktop_is_accepted_with_its_smaller_pages(folder: Path) -> None:
    for name, code in {"libtvm_ffi.so": FFI, "libtvm_runtime.so": RUNTIME, "libtvm_runtime_opencl.so": OPENCL}.items():
        mark(link(folder / name, code, page=4096), EM_X86_64)
    mark(link(folder / "tvm_rpc", PROGRAM, (), ["-Wl,--dynamic-linker=/lib64/ld-linux-x86-64.so.2"]), EM_X86_64)
    assert examine(folder, HOST).abi == "x86_64"


def test_android_libraries_are_not_taken_for_a_boards(folder: Path) -> None:
    link(folder / "tvm_rpc", PROGRAM, ["libtvm_runtime.so"], ["-Wl,--dynamic-linker=/lib/ld-linux-aarch64.so.1"])
    assert "libc.so, which libtvm_ffi.so needs, is neither in the folder nor part of Linux" in refusal(folder)


@pytest.mark.parametrize("name", ["tvm_rpc", "libtvm_runtime.so", "libtvm_ffi.so", "libtvm_runtime_opencl.so"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    assert refusal(folder) == f"{name} is not in it"


def test_no_folder(tmp_path: Path) -> None:
    assert refusal(tmp_path / "absent") == "it does not exist"


def test_the_wrong_processor(folder: Path) -> None:
    mark(folder / "libtvm_ffi.so", EM_X86_64)
    assert refusal(folder).splitlines()[0] == "libtvm_ffi.so is for EM_X86_64, tvm_rpc for EM_AARCH64"
    mark(folder / "tvm_rpc", EM_X86_64)
    assert "tvm_rpc is for EM_X86_64, 64 bits" in refusal(folder)


def test_the_wrong_loader(folder: Path) -> None:
    link(folder / "tvm_rpc", PROGRAM, ["libtvm_runtime.so"], ["-Wl,--dynamic-linker=/lib64/ld-musl.so"])
    assert "with /lib64/ld-musl.so; it must be for arm64-v8a (Android)" in refusal(folder)


def test_small_pages(folder: Path) -> None:
    link(folder / "libtvm_ffi.so", FFI, page=4096)
    assert "libtvm_ffi.so is aligned to pages of 4096 bytes" in refusal(folder)


def test_a_library_that_is_nowhere(folder: Path) -> None:
    link(folder / "libtvm_ffi.so", FFI, ["libQnnHtp.so"])
    assert refusal(folder) == "libQnnHtp.so, which libtvm_ffi.so needs, is neither in the folder nor part of Android"


def test_a_need_with_a_path_in_it_is_not_followed(folder: Path) -> None:
    shutil.copy(folder / "libtvm_ffi.so", folder.parent / "secret.so")
    link(folder / "libAsecret.so", "")
    link(folder / "libtvm_ffi.so", FFI, ["libAsecret.so"])
    hostile = (folder / "libtvm_ffi.so").read_bytes().replace(b"libAsecret.so", b"../secret.so\0")
    (folder / "libtvm_ffi.so").write_bytes(hostile)
    assert "../secret.so, which libtvm_ffi.so needs, is neither in the folder" in refusal(folder)


def test_files_of_different_builds(folder: Path) -> None:
    link(folder / "libtvm_runtime.so", RUNTIME.replace("_ZN3tvm7runtimeEv", "_ZN3tvm7runtimeEi"))
    assert (
        "libtvm_runtime_opencl.so needs _ZN3tvm7runtimeEv (1 such symbols), which no file of the folder has"
        in refusal(folder)
    )


def test_no_dynamic_symbols(folder: Path) -> None:
    link(folder / "libtvm_runtime_opencl.so", 'static int x; int* keep() __attribute__((visibility("hidden")));')
    assert "libtvm_runtime_opencl.so was stripped of its dynamic symbol table" in refusal(folder)


def test_androids_loader_reads_section_headers_of_libraries(folder: Path) -> None:
    for name in ("tvm_rpc", "libtvm_runtime.so"):
        content = bytearray((folder / name).read_bytes())
        content[0x28:0x30] = bytes(8)  # e_shoff
        content[0x3C:0x40] = bytes(4)  # e_shnum, e_shstrndx
        (folder / name).write_bytes(content)
    (reason,) = refusal(folder).splitlines()
    assert reason.startswith("libtvm_runtime.so has no section headers, which Android's loader refuses (strip with")


def test_section_headers_that_contradict_the_program_headers_are_refused(folder: Path) -> None:
    content = bytearray((folder / "libtvm_ffi.so").read_bytes())
    start, size = int.from_bytes(content[0x28:0x30], "little"), 64
    kinds = [int.from_bytes(content[start + size * n + 4 :][:4], "little") for n in range(content[0x3C])]
    at = start + size * kinds.index(6) + 0x18  # sh_offset of SHT_DYNAMIC
    content[at] ^= 16
    (folder / "libtvm_ffi.so").write_bytes(content)
    assert "its dynamic section that is not where its program header says" in refusal(folder)


def test_an_ordinary_strip_does_no_harm(folder: Path) -> None:
    for file in folder.iterdir():
        mark(file, EM_X86_64)
        subprocess.run(["strip", "--strip-all", file], check=True)
        mark(file)
    assert examine(folder, HOST).abi == "arm64-v8a"


@pytest.mark.parametrize("kept", [0, 3, 63, 200, 4096, -1])
def test_a_truncated_library(folder: Path, kept: int) -> None:
    file = folder / "libtvm_runtime.so"
    file.write_bytes(file.read_bytes()[:kept])
    assert refusal(folder).startswith("libtvm_runtime.so is ")


def test_another_release_of_tvm(folder: Path) -> None:
    older = dataclasses.replace(HOST, builtins=HOST.builtins | {"vm.builtin.new"})
    with pytest.raises(RuntimeRefused) as caught:
        examine(folder, older)
    assert "older release than this host's TVM: it lacks vm.builtin.new (1 of 2" in caught.value.reasons[0]
    newer = dataclasses.replace(HOST, ffi=HOST.ffi - {"TVMFFIFunctionCall"})
    assert [note for note in examine(folder, newer).notes if "it adds TVMFFIFunctionCall" in note]


def test_the_installed_tvm_has_an_interface() -> None:
    found = host_interface()
    assert "TVMFFIFunctionCall" in found.ffi
    assert len(found.builtins) > 50


@functools.cache
def sample(good: Path) -> bytes:
    return (good / "libtvm_runtime.so").read_bytes()


@given(data=st.data())
def test_damage_is_never_more_than_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, good: Path, data: st.DataObject
) -> None:
    content = bytearray(sample(good))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 1200))] = data.draw(st.integers(0, 255))
    file = tmp_path_factory.getbasetemp() / "damaged.so"
    file.write_bytes(content)
    try:
        read_elf(file)
        interface(file, file)
    except BadElf:
        pass


def test_a_runtime_is_kept_once_and_found_by_abi(folder: Path, tmp_path: Path) -> None:
    kept = RuntimeStore(tmp_path / "cache")
    added = kept.add(examine(folder, HOST))
    assert kept.add(examine(folder, HOST)).digest == added.digest
    assert [runtime.digest for runtime in kept.entries()] == [added.digest]
    found = kept.runtime_for("arm64-v8a")
    assert (found.folder / "tvm_rpc").read_bytes() == (folder / "tvm_rpc").read_bytes()
    assert found.preload == ("libtvm_runtime_opencl.so",)


def test_the_latest_for_an_abi_is_kept_for_it_and_can_be_executed(folder: Path, tmp_path: Path) -> None:
    kept = RuntimeStore(tmp_path / "cache")
    (folder / "tvm_rpc").chmod(0o644)
    kept.add(examine(folder, HOST))
    link(folder / "libtvm_runtime_opencl.so", OPENCL + "void _ZN3tvm5laterEv(){}", ["libtvm_runtime.so"])
    later = kept.add(examine(folder, HOST))
    assert kept.find_for("arm64-v8a") == later
    assert kept.find_for("x86_64") is None
    assert os.access(later.folder / "tvm_rpc", os.X_OK)


def test_a_phone_without_a_runtime_is_told_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(SetupMissing, match="ABI arm64-v8a yet") as caught:
        RuntimeStore(tmp_path).runtime_for("arm64-v8a")
    assert "runtime add" in caught.value.hint


def test_a_runtime_of_another_release_is_not_used(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = RuntimeStore(tmp_path / "cache")
    monkeypatch.setattr(installed_tvm, "stated_version", lambda _: "0.25.0")
    kept.add(examine(folder, HOST))
    monkeypatch.setattr(installed_tvm, "stated_version", lambda _: "0.27.0")
    with pytest.raises(SetupMissing, match=r"no TVM 0\.27\.0 runtime .*only for TVM 0\.25\.0"):
        kept.runtime_for("arm64-v8a")


def test_removing_needs_a_name_that_fits_one(folder: Path, tmp_path: Path) -> None:
    kept = RuntimeStore(tmp_path / "cache")
    added = kept.add(examine(folder, HOST))
    for prefix in ("", "zz", ".."):
        with pytest.raises(UnknownRuntime):
            kept.remove(prefix)
    kept.remove(added.digest[:4])
    assert kept.entries() == []


def test_a_damaged_entry_is_named(folder: Path, tmp_path: Path) -> None:
    kept = RuntimeStore(tmp_path / "cache")
    added = kept.add(examine(folder, HOST))
    (kept.folder / added.digest / "runtime.json").write_text("[]")
    with pytest.raises(RigFailure, match="is damaged"):
        kept.entries()


def test_the_commands(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from harness.cli import app

    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("harness.tools.runtime.check.host_interface", lambda: HOST)
    run = CliRunner().invoke
    added = run(app, ["runtime", "add", str(folder)])
    assert added.exit_code == 0, added.output
    assert "for arm64-v8a: 4 files" in added.output
    digest = added.output.split()[0]
    assert digest in run(app, ["runtime", "list"]).output
    assert f"removed {digest}" in run(app, ["runtime", "remove", digest[:5]]).output
    (folder / "tvm_rpc").write_bytes(b"")
    (folder / "libtvm_ffi.so").write_bytes(b"")
    refused = run(app, ["runtime", "add", str(folder)])
    assert isinstance(refused.exception, RuntimeRefused)
    assert len(refused.exception.reasons) == 2
