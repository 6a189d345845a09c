"""Products of integers in half precision come to the same integers as onnxruntime's, which no half would hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from combinations import one_at_a_time
from compile_requests import request_for
from onnx import TensorProto, helper
from small_networks import answers, kinds, network

from harness.compile.artifacts.compile import compile_model, import_request
from harness.compile.compiler.compat import dtype_of, type_of
from harness.compile.models.preparation import prepare
from harness.compile.paths.cpu import cpu_machine, run_on_cpu

PRECISIONS = ("float16", "float16_acc32")
HALVES = pytest.mark.parametrize("precision", PRECISIONS)


def integers(high: int, *shape: int) -> Any:
    return np.random.default_rng([high, *shape]).integers(high // 2, high, shape, endpoint=True).astype(np.uint8)


def imported(model: Any, precision: str, folder: Path) -> Any:
    """What is compiled of a network, after its preparation."""
    prepared = onnx.ModelProto()
    prepared.CopyFrom(model)
    prepare(prepared)
    assert not {"MatMulInteger", "ConvInteger", "QLinearConv"} & {*kinds(prepared)}
    onnx.save(prepared, folder / "net.onnx")
    return import_request(request_for(folder / "net.onnx", "cpu", precision))[0]


def require_same(model: Any, precision: str, folder: Path, x: Any) -> None:
    (wanted,) = answers(model, {"x": x})
    (got,) = run_on_cpu(cpu_machine(imported(model, precision, folder)), [x])
    assert np.abs(wanted.astype(np.int64)).max() > 65504 or wanted.dtype == np.uint8
    np.testing.assert_array_equal(got, wanted)


@HALVES
@pytest.mark.parametrize("length", [16, 2000])
def test_products_of_matrices(length: int, precision: str, tmp_path: Path) -> None:
    node = helper.make_node("MatMulInteger", ["x", "w", "z"], ["y"])
    weights = {"w": integers(255, length, 6), "z": np.uint8(3)}
    model = network([node], {"x": [2, 3, length]}, dtype=TensorProto.UINT8, **weights)
    require_same(model, precision, tmp_path, integers(254, 2, 3, length))


@pytest.mark.parametrize(
    ("axes", "window", "precision"),
    one_at_a_time([2, 1], [{"pads": [1, 0, 2, 3]}, {"auto_pad": "SAME_UPPER"}, {"group": 2}], PRECISIONS),
    ids=str,
)
def test_convolutions(axes: int, window: dict[str, Any], precision: str, tmp_path: Path) -> None:
    window = {"pads": [1, 2]} if axes == 1 and "pads" in window else window
    node = helper.make_node("ConvInteger", ["x", "w", "z"], ["y"], kernel_shape=[4] * axes, **window)
    shape = [1, 16, *[9] * axes]
    weights = {"w": integers(255, 8, 16 // window.get("group", 1), *[4] * axes), "z": np.uint8(3)}
    model = network([node], {"x": shape}, dtype=TensorProto.UINT8, **weights)
    require_same(model, precision, tmp_path, integers(254, *shape))


@HALVES
def test_a_quantised_convolution_with_a_bias(precision: str, tmp_path: Path) -> None:
    weights = {
        "s": np.float32(0.02),
        "z": np.uint8(121),
        "w": integers(255, 8, 8, 3, 3),
        "ws": np.float32(0.01),
        "wz": np.uint8(128),
        "ys": np.float32(2.0),
        "yz": np.uint8(100),
        "b": np.arange(8, dtype=np.int32) * 20_000,
    }
    node = helper.make_node("QLinearConv", ["x", *weights], ["y"], pads=[1, 1, 1, 1])
    model = network([node], {"x": [1, 8, 6, 7]}, dtype=TensorProto.UINT8, **weights)
    require_same(model, precision, tmp_path, integers(255, 1, 8, 6, 7))


@HALVES
def test_other_products_are_of_halves(precision: str, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "v"], ["first"]),
        helper.make_node("DynamicQuantizeLinear", ["first"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["i"]),
        helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT),
    ]
    weights = {"v": np.ones((8, 8), np.float32), "w": integers(255, 8, 8)}
    mod = imported(network(nodes, {"x": [2, 8]}, **weights), precision, tmp_path)
    calls = [binding.value for block in mod["main"].body.blocks for binding in block.bindings]
    products = [call for call in calls if getattr(getattr(call, "op", None), "name", "") == "relax.matmul"]
    assert [dtype_of(type_of(call.args[0])) for call in products] == ["float16", "float32"]


@HALVES
def test_what_opencl_ml_takes_of_them_is_in_float32(precision: str, tmp_path: Path) -> None:
    node = helper.make_node("ConvInteger", ["x", "w", "z"], ["y"], kernel_shape=[1, 1])
    weights = {"w": integers(255, 8, 16, 1, 1), "z": np.uint8(3)}
    model = network([node], {"x": [1, 16, 9, 9]}, dtype=TensorProto.UINT8, **weights)
    imported(model, precision, tmp_path)
    facts = compile_model(request_for(tmp_path / "net.onnx", "clml", precision), tmp_path).facts
    assert (facts["half_kernels"], facts["subgraphs"], facts["half_subgraphs"]) == (0, 1, 0)


@HALVES
@pytest.mark.parametrize("upper", [0, 1])
def test_a_triangle_of_what_is_computed_in_halves(upper: int, precision: str, tmp_path: Path) -> None:
    """TVM 0.27 takes its diagonal, which is a number of the program, for a tensor."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"]),
        helper.make_node("Trilu", ["m", "k"], ["t"], upper=upper),
        helper.make_node("MatMul", ["t", "w"], ["y"]),
    ]
    rng = np.random.default_rng(0)
    model = network(nodes, {"x": [8, 8]}, w=rng.standard_normal((8, 8)).astype(np.float32), k=np.array(-1))
    x = rng.standard_normal((8, 8)).astype(np.float32)
    (wanted,), (got,) = answers(model, {"x": x}), run_on_cpu(cpu_machine(imported(model, precision, tmp_path)), [x])
    assert np.allclose(got, wanted, atol=0.02 * float(np.abs(wanted).max()))
