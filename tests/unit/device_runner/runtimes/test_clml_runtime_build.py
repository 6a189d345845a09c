"""How the CLML model is found, built and loaded; nothing is compiled here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from device_runner.failures import RigFailure
from device_runner.runtimes import clml as clml_runtime


def test_a_runtime_that_is_there_is_kept() -> None:
    assert not replace(clml_runtime.CLML, function="ffi.ModuleLoadFromFile").load(Path("never-opened.so"))


def test_a_library_that_does_not_load_says_so(tmp_path: Path) -> None:
    (tmp_path / "broken.so").write_bytes(b"no library")
    with pytest.raises(RigFailure, match=r"broken\.so does not load") as raised:
        replace(clml_runtime.CLML, function="no such function").load(tmp_path / "broken.so")
    assert "too short" in raised.value.evidence


def test_it_is_kept_apart_from_other_libraries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler = tmp_path / "c++"
    compiler.write_text('#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" = -o ] && echo built > "$2"; shift; done\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    path = clml_runtime.library(tmp_path)
    assert path.name == "libadreno_bench_clml.so"
    assert path.relative_to(tmp_path).parts[0] == "clml_runtime"
    assert path.read_text() == "built\n"
