"""Kernels as files, and what `kernels` says of them."""

from pathlib import Path

import pytest
from fake_records import a_record

from harness.base.outcome import Outcome
from harness.tools.explain.kernel_files import kernel_files
from harness.tools.explain.record_commands import MOST_LINES, kernels_text
from harness.tools.shared.kernel_source import pieces

ONE = "__kernel void conv_kernel(int a);\n__kernel void conv_kernel(int a) {}\n\n"
TWO = "__kernel void relu_kernel(int a);\n__kernel void relu_kernel(int a) {}\n"
SOURCE = f"// Function: conv_kernel\n{ONE}// Function: relu_kernel\n{TWO}"
KEY = "a" * 24


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path))
    (tmp_path / "artifacts" / KEY).mkdir(parents=True)
    (tmp_path / "artifacts" / KEY / "kernels.cl").write_text(SOURCE)
    return tmp_path


def test_each_kernel_is_a_file_whose_lines_count_as_in_the_build_log(store: Path) -> None:
    assert pieces(SOURCE) == {"conv_kernel": ONE, "relu_kernel": TWO}
    for _ in range(2):  # the second time they are there
        files = kernel_files(store, KEY)
        assert files is not None
        assert [(file.name, file.read_text()) for file in files] == [("conv_kernel.cl", ONE), ("relu_kernel.cl", TWO)]


def test_a_long_name_becomes_a_file_that_can_be_written(store: Path) -> None:
    name = "transpose_" * 90
    (store / "artifacts" / KEY / "kernels.cl").write_text(f"// Function: {name}\n{ONE}")
    (file,) = kernel_files(store, KEY) or []
    assert file.read_text() == ONE
    assert file.name.startswith("transpose_")


def test_what_is_not_in_the_cache_has_no_files(store: Path) -> None:
    assert kernel_files(store, "b" * 24) is None
    assert "not in the cache" in kernels_text(a_record(artifact="b" * 24))


def test_a_refused_kernel_is_told_with_its_build_log_and_its_file(store: Path) -> None:
    log = "\n".join(f"error: {line}:1: expected ')'" for line in range(1, 101))
    record = a_record(outcome=Outcome.KERNEL_BUILD_ERROR, message="it failed: error: 1:1: expected ')'", evidence=log)
    said = kernels_text(record)
    assert said.startswith("tiny-opencl-float32-untuned: kernel-build-error\n  it failed: error: 1:1: expected ')'\n")
    assert said.count("expected") == 1 + MOST_LINES
    assert "... and 80 more lines in the record" in said
    assert f"are in {store}/artifacts/{KEY}/kernels\n  conv_kernel.cl\n  relu_kernel.cl" in said
