"""Numbers that no rounding moves."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.compile.models.outline import tensor_types
from harness.compile.oracle.exact import exact_tensors
from harness.compile.oracle.leeway import SINGLE
from harness.compile.oracle.leeway_measurement import measure_leeway
from harness.compile.oracle.onnx_runtime import OnnxRuntime

CHANCE = np.random.default_rng(0)
X = CHANCE.standard_normal((8, 8)).astype(np.float32)
MASK = np.array([[1, 1, 1, 1, 1, 0, 0, 0]])


def network(nodes: list[Any], mask: int = TensorProto.INT64, **weights: Any) -> onnx.ModelProto:
    """Of `x` and of a mask of words."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape),
        helper.make_tensor_value_info("mask", mask, MASK.shape),
    ]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    ends = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "small", inputs, ends, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def attention(lowest: float | None, mask: int = TensorProto.INT64) -> onnx.ModelProto:
    """Shares of the words that a mask leaves, which is 0 or the lowest number; without a mask of all of them."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["scores"]),
        helper.make_node("Cast", ["mask"], ["words"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "words"], ["hidden"]),
        helper.make_node("Mul", ["hidden", "lowest"], ["low"]),
        helper.make_node("Add", ["scores", "low"], ["masked"]),
        helper.make_node("Softmax", ["scores" if lowest is None else "masked"], ["y"]),
    ]
    weights = {"w": CHANCE.standard_normal((8, 8)).astype(np.float32), "one": np.float32(1)}
    return network(nodes, mask, lowest=np.float32(lowest or -1), **weights)


def rounding(model: onnx.ModelProto, mask: np.ndarray = MASK) -> float:
    inputs = {"x": X, "mask": mask}
    (measured,) = measure_leeway(model, inputs, OnnxRuntime(model).ask(inputs))
    return measured.rounding[SINGLE]


@pytest.mark.parametrize("lowest", [-10_000.0, -1e9, float(np.finfo(np.float32).min)])
@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.FLOAT])
def test_a_mask_does_not_magnify_rounding(lowest: float, kind: int) -> None:
    mask = MASK.astype(helper.tensor_dtype_to_np_dtype(kind))
    assert 0 < rounding(attention(lowest, kind), mask) < 10 * rounding(attention(None, kind), mask)


def test_whole_numbers_come_of_whole_numbers_alone() -> None:
    nodes = [
        helper.make_node("Cast", ["mask"], ["a"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["one", "a"], ["b"]),
        helper.make_node("Mul", ["b", "third"], ["c"]),
        helper.make_node("Add", ["c", "a"], ["d"]),
        helper.make_node("Div", ["a", "two"], ["e"]),
        helper.make_node("Where", ["yes", "none", "one"], ["f"]),
        helper.make_node("Add", ["x", "b"], ["y"]),
    ]
    weights = {"one": np.float32(1), "two": np.float32(2), "third": np.float32(1 / 3), "yes": np.array(True)}
    model = network(nodes, none=np.float32(-np.inf), **weights)
    inputs = {"x": X, "mask": MASK}
    assert exact_tensors(model, tensor_types(model), inputs) >= {"mask", "a", "b", "f", "one", "two", "none"}
    assert not exact_tensors(model, tensor_types(model), inputs) & {"x", "c", "d", "e", "y", "third"}


def test_the_difference_of_numbers_that_are_rounded_still_counts() -> None:
    def model(far: float) -> onnx.ModelProto:
        nodes = [helper.make_node("Add", ["x", "far"], ["a"]), helper.make_node("Sub", ["a", "far"], ["y"])]
        return network(nodes, far=np.float32(far))

    assert rounding(model(1000.0)) > 1e-4
