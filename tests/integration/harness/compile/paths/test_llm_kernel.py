"""The int4 kernel of language models, as TVM's pass for CLML takes it or not.

The network is what `OpenCLMLOffLoadForLLM` looks for: weights packed eight to a number, a scale for 32 of them, a
function "dequantize" that makes float16 of both, and a product with one sequence. TVM's ONNX importer makes none such,
so it is written in Relax here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from device_runner.device import Loadable
from device_runner.store import sha256_of
from harness.base.case import Precision
from harness.base.failures import CompileFailure
from harness.compile.artifacts.compile import stepping
from harness.compile.compiler.compat import clml_symbols, tensor_type, without_attributes
from harness.compile.compiler.pass_runner import run_passes
from harness.compile.compiler.passes import adreno_relax_passes
from harness.compile.paths import PATHS
from harness.compile.paths.base import ImageLimits
from harness.compile.paths.clml.codegen import register
from harness.compile.paths.lowered_module import add_host_entry, vdevices
from harness.compile.quirks import quirks_for

PACKED, GROUP, ZERO = 8, 32, 7
"""Weights in a uint32, weights of one scale, and the code of 0, as in MLC's q4f16_1."""
ALONE = "clml, without OpenCLMLOffLoad"
"""TVM's own pipeline runs `OpenCLMLOffLoadForLLM` and then `OpenCLMLOffLoad`; this is the first of them alone."""


@dataclass(frozen=True)
class Shape:
    """Of the product: `rows` tokens of `features` numbers, and `outputs` for each."""

    rows: int
    features: int
    outputs: int


def network(shape: Shape) -> Any:
    """The module: `main(x, packed, scales)`."""
    from tvm import relax, te, tirx

    k, n = shape.features, shape.outputs
    packed = te.placeholder((k // PACKED, n), "uint32", name="packed")
    scales = te.placeholder((k // GROUP, n), "float16", name="scales")

    def weight(row: Any, column: Any) -> Any:
        shift = tirx.Cast("uint32", (row % PACKED) * 4)
        code = tirx.bitwise_and(tirx.shift_right(packed[row // PACKED, column], shift), tirx.const(15, "uint32"))
        return (tirx.Cast("float16", code) - tirx.const(ZERO, "float16")) * scales[row // GROUP, column]

    made = te.compute((k, n), weight, name="dequantize")
    builder = relax.BlockBuilder()
    dequantize = without_attributes(te.create_prim_func([packed, scales, made]), ("global_symbol",))
    function = builder.add_func(dequantize, "dequantize")
    x = relax.Var("x", tensor_type((1, shape.rows, k), "float16"))
    given = [relax.Var(one.name, tensor_type([int(e) for e in one.shape], str(one.dtype))) for one in (packed, scales)]
    with builder.function("main", [x, *given]):
        with builder.dataflow():
            weights = builder.emit(relax.call_tir(function, given, tensor_type((k, n), "float16")))
            result = builder.emit_output(builder.emit(relax.op.matmul(x, weights)))
        builder.emit_func_output(result)
    return builder.finalize()


def built(path_name: str, shape: Shape, folder: Path) -> tuple[Loadable, list[str]]:
    """The library, and which parts of it are CLML's. Raises CompileFailure."""
    path = PATHS[path_name.partition(",")[0]]
    quirks = quirks_for(path.name, Precision.FLOAT16, as_shipped=False)
    target = path.target(ImageLimits(), None)
    with stepping("lower"):
        lowered = (
            _llm_alone(network(shape), target) if path_name == ALONE else path.lower(network(shape), target, quirks)
        )
    with stepping("build"):
        executable = path.build(add_host_entry(lowered), target, quirks)
    library = folder / f"{path.name}.so"
    executable.export_library(str(library))
    return Loadable(library, sha256_of(library), vdevices(lowered)), clml_symbols(executable)


def _llm_alone(mod: Any, target: Any) -> Any:
    from tvm.relax.backend.adreno import clml

    with target:
        return run_passes([clml.OpenCLMLOffLoadForLLM(target), *adreno_relax_passes(target)], mod)


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
