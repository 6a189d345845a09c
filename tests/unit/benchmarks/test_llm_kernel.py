"""The int4 kernel of language models, as TVM's pass for CLML takes it or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.llm_kernel import ALONE, Shape, built
from harness.failures import CompileFailure
from harness.paths.clml.registration import register

SHAPE = Shape(1, 64, 32)


def test_a_tvm_that_knows_of_no_clml_5_leaves_it_on_opencl(tmp_path: Path) -> None:
    loadable, parts = built("clml", SHAPE, tmp_path)
    assert parts == []
    assert loadable.library.stat().st_size > 10_000


def test_with_clml_5_its_pass_takes_it_and_the_next_one_cannot_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register()
    from tvm.relax.backend.adreno import clml

    monkeypatch.setattr(clml, "clml_sdk_version", lambda: 5)
    assert built(ALONE, SHAPE, tmp_path)[1] == ["fused_dequantize_relax_matmul_openclml"]
    with pytest.raises(CompileFailure, match=r"in MergeCompositeFunctions on relax\.call_dps_packed"):
        built("clml", SHAPE, tmp_path)
