"""The kernel that language models on phones live on, int4 weights times float16 activations, and what TVM makes of it.

    ADRENO_BENCH_OPENCL_DEVICE=Intel python -m benchmarks.llm_kernel [ROWS [FEATURES [OUTPUTS]]]

The network is what `OpenCLMLOffLoadForLLM` looks for: weights packed eight to a number, a scale for 32 of them, a
function "dequantize" that makes float16 of both, and a product with one sequence. TVM's ONNX importer makes none such,
so it is written in Relax here. Prints a row for each way through TVM: the path, the version of CLML that TVM is told
it was built with, what went to CLML, and what came of running it, judged against numpy in float64.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from device_runner.device import Loadable
from device_runner.failures import Failure
from device_runner.registry import open_device
from harness.build.compile import stepping
from harness.cases.case import Precision
from harness.cases.suite import RELATIVE_TOLERANCE
from harness.compiler.compat import clml_symbols, tensor_type, without_attributes
from harness.compiler.passes import adreno_relax_passes
from harness.compiler.running import run_passes
from harness.paths import PATHS
from harness.paths.base import ImageLimits
from harness.paths.clml.registration import register
from harness.paths.lowered import add_host_entry, vdevices
from harness.quirks import quirks_for
from harness.run.correctness import judge
from harness.store import cache_root, sha256_of

if TYPE_CHECKING:
    from device_runner.device import Array, Device

PACKED, GROUP, ZERO = 8, 32, 7
"""Weights in a uint32, weights of one scale, and the code of 0, as in MLC's q4f16_1."""
ALONE = "clml, without OpenCLMLOffLoad"
WAYS = (("opencl", 0), ("texture", 0), ("clml", 3), ("clml", 4), ("clml", 5), (ALONE, 5))
"""Paths, and versions of CLML: 3 is that of a TVM which only generates code, 4 the default of TVM's CMake. TVM's own
pipeline runs `OpenCLMLOffLoadForLLM` and then `OpenCLMLOffLoad`; the last way is the first of them alone."""
TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Shape:
    """Of the product: `rows` tokens of `features` numbers, and `outputs` for each."""

    rows: int = 1
    features: int = 896
    outputs: int = 896


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


def inputs(shape: Shape) -> tuple[list[Array], Array]:
    """Seeded inputs, and what must come of them."""
    rng = np.random.default_rng(20_260)
    codes = rng.integers(0, 16, (shape.features, shape.outputs), dtype=np.uint32)
    scales = rng.uniform(0.01, 0.03, (shape.features // GROUP, shape.outputs)).astype(np.float16)
    x = rng.standard_normal((1, shape.rows, shape.features)).astype(np.float16)
    shifts = (4 * np.arange(PACKED, dtype=np.uint32))[None, :, None]
    packed = (codes.reshape(-1, PACKED, shape.outputs) << shifts).sum(1, dtype=np.uint32)
    weights = (codes.astype(np.float64) - ZERO) * np.repeat(scales, GROUP, axis=0).astype(np.float64)
    return [x, packed, scales], (x.astype(np.float64) @ weights).astype(np.float16)


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


def outcome(device: Device, loadable: Loadable, shape: Shape) -> str:
    """What running it came to."""
    given, expected = inputs(shape)
    with device.session({}, timeout_s=TIMEOUT_S) as session:
        outputs, _ = session.load(loadable, timeout_s=TIMEOUT_S).run(given, timeout_s=TIMEOUT_S)
    judged = judge(outputs, [expected], RELATIVE_TOLERANCE["float16"])
    return f"right, {judged.max_rel_err:.1e}" if judged.right else judged.complaint


def rows(shape: Shape) -> Iterator[tuple[str, ...]]:
    """A row for each way, as soon as it is known."""
    import tvm_ffi

    register()
    for path, version in WAYS:
        if version:
            os.environ["ADRENO_BENCH_CLML_VERSION"] = str(max(version, 4))  # what the device says that it has
            tvm_ffi.register_global_func("relax.get_openclml_version", lambda told=version: told, override=True)
        with tempfile.TemporaryDirectory() as folder:
            told, offloaded = f"{version or '-'}", "-"
            try:
                loadable, parts = built(path, shape, Path(folder))
                offloaded = ", ".join(parts) or "nothing"
                with open_device("local", cache_root()) as device:
                    yield path, told, offloaded, outcome(device, loadable, shape)
            except Failure as failure:
                yield path, told, offloaded, f"{failure.outcome}: {failure.message}"


def main(sizes: Sequence[str]) -> None:
    """Print the table."""
    heads = ("path", "CLML that TVM was told of", "parts given to CLML", "outcome")
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    for row in rows(Shape(*map(int, sizes))):
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
