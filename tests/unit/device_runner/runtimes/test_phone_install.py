"""A board that has OpenCL by another name than TVM asks for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from device_runner.failures import DeviceFull
from device_runner.runtimes.phone.install import linked_opencl
from device_runner.stand_ins.local import LocalTransport


@pytest.fixture
def board(tmp_path: Path) -> LocalTransport:
    """A board whose loader has no cache, so that only the folders count."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "ldconfig").write_text('#!/bin/sh\ncat "${0%/*}/../known" 2>/dev/null || :\n')
    (tools / "ldconfig").chmod(0o755)
    return LocalTransport(str(tmp_path / "ours"), {"PATH": f"{tools}:{os.environ['PATH']}"})


def has(folder: Path, *names: str) -> str:
    folder.mkdir()
    for name in names:
        (folder / name).write_bytes(b"\x7fELF")
    return str(folder)


def test_a_board_with_the_versioned_name_alone_is_given_the_other(board: LocalTransport, tmp_path: Path) -> None:
    searched = [has(tmp_path / "a"), has(tmp_path / "b", "libOpenCL.so.1")]
    made = linked_opencl(board, searched)
    assert made == f"{board.root}/opencl"
    assert (Path(made) / "libOpenCL.so").readlink() == tmp_path / "b/libOpenCL.so.1"
    assert linked_opencl(board, searched) == made


def test_a_library_that_only_the_loaders_cache_knows_is_found(board: LocalTransport, tmp_path: Path) -> None:
    library = Path(has(tmp_path / "opt", "libOpenCL.so.1")) / "libOpenCL.so.1"
    (tmp_path / "known").write_text(f"\tlibOpenCL.so.1 (libc6,AArch64) => {library}\n\tlibc.so.6 (libc6) => /x\n")
    made = linked_opencl(board, [])
    assert (Path(made) / "libOpenCL.so").readlink() == library


def test_a_board_that_has_the_name_is_left_alone(board: LocalTransport, tmp_path: Path) -> None:
    both = has(tmp_path / "both", "libOpenCL.so.1", "libOpenCL.so")
    one = has(tmp_path / "one", "libOpenCL.so.1")
    assert linked_opencl(board, [one, both]) == ""
    (tmp_path / "known").write_text("\tlibOpenCL.so (libc6) => /opt/libOpenCL.so\n")
    assert linked_opencl(board, [one]) == ""


def test_without_opencl_nothing_is_made(board: LocalTransport, tmp_path: Path) -> None:
    assert linked_opencl(board, [has(tmp_path / "empty")]) == ""
    assert not Path(board.root).exists()


def test_a_link_to_a_driver_that_was_removed_goes(board: LocalTransport, tmp_path: Path) -> None:
    searched = [has(tmp_path / "a", "libOpenCL.so.1")]
    made = Path(linked_opencl(board, searched))
    (tmp_path / "a/libOpenCL.so.1").unlink()
    assert linked_opencl(board, searched) == ""
    assert not (made / "libOpenCL.so").is_symlink()


def test_a_folder_that_cannot_be_made_is_named(board: LocalTransport, tmp_path: Path) -> None:
    Path(board.root).write_text("a file")
    with pytest.raises(DeviceFull, match="refuses a link in"):
        linked_opencl(board, [has(tmp_path / "a", "libOpenCL.so.1")])
