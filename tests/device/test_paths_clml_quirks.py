"""What the quirks keep from CLML really goes wrong there, and is right with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import clml_golden
import numpy as np
import pytest
from defects.clml import conv
from defects.sample import network

from device_runner.runtimes import clml as clml_runtime
from device_runner.runtimes import opencl as opencl_runtime
from harness.base.case import Precision
from harness.compile.compiler.compat import type_of
from harness.compile.paths import PATHS
from harness.compile.paths.base import ImageLimits
from harness.compile.quirks import Quirk, quirks_for

pytestmark = [pytest.mark.rest, pytest.mark.device, pytest.mark.slow]

CASES = (
    "add_self",
    "const_add",
    "conv2d_add_fullconst",
    "conv2d_add_scalar",
    "conv2d_bias_swapped",
    "conv2d_grouped",
    "conv2d_weight_input",
    "max_pool2d_dilation",
    "max_pool2d_nhwc",
    "pad_conv2d_both",
    "pad_conv2d_reflect",
)

Run = Callable[..., Any]


@pytest.fixture
def run(sidecar_cache: Path, tmp_path: Path) -> Run:
    """Build a module for a path, load it back, call it once on seeded inputs."""
    if opencl_runtime.needed():
        opencl_runtime.load(opencl_runtime.sidecar(sidecar_cache))
    if clml_runtime.needed():
        clml_runtime.load(clml_runtime.library(sidecar_cache))
    import tvm

    def run(mod: Any, path: str, quirks: Sequence[Quirk] = ()) -> Any:
        way = PATHS[path]
        target = way.target(ImageLimits(8192, 8192, 2048), None)
        built = way.build(way.lower(mod, target, quirks), target, quirks)
        file = tmp_path / f"{len(list(tmp_path.iterdir()))}.so"
        built.export_library(str(file))
        device = tvm.cpu() if path == "cpu" else tvm.device("opencl")
        machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(file)), [device])
        rng = np.random.default_rng(3)
        shapes = [[int(size) for size in type_of(parameter).shape.values] for parameter in mod["main"].params]
        inputs = [tvm.runtime.tensor(rng.standard_normal(shape, dtype=np.float32), device) for shape in shapes]
        return machine["main"](*inputs).numpy()

    return run


@pytest.mark.parametrize("case", CASES)
def test_right_with_the_quirks_and_not_as_shipped(case: str, run: Run) -> None:
    expected = run(clml_golden.build(case), "cpu")
    with_quirks = run(clml_golden.build(case), "clml", quirks_for("clml", Precision.FLOAT32, as_shipped=False))
    np.testing.assert_allclose(with_quirks, expected, rtol=1e-4, atol=1e-4)
    try:
        shipped = run(clml_golden.build(case), "clml", quirks_for("clml", Precision.FLOAT32, as_shipped=True))
    except Exception:  # the code generator or the runtime refuses it
        return
    assert np.max(np.abs(shipped - expected)) > 0.1


def test_what_a_part_returns_and_reads_is_right_with_the_quirks_and_not_as_shipped(run: Run) -> None:
    from tvm import relax

    def body(emit: Callable[[Any], Any], x: Any) -> Any:
        first = emit(conv(x))
        second = emit(conv(first))
        return emit(relax.op.concat([first, second, emit(conv(second))], axis=1))

    expected = run(network(body), "cpu")
    for as_shipped in (False, True):
        answer = run(network(body), "clml", quirks_for("clml", Precision.FLOAT32, as_shipped=as_shipped))
        assert bool(np.max(np.abs(answer - expected)) > 0.1 * np.max(np.abs(expected))) is as_shipped
