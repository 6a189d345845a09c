"""What rounding does to a network's answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from harness.base.case import RELATIVE_TOLERANCE, ROUNDING_FACTOR
from harness.compile.models.outline import tensor_types
from harness.compile.oracle.leeway import HALVES, SINGLE
from harness.compile.oracle.leeway_measurement import measure_leeway
from harness.compile.oracle.onnx_runtime import OnnxRuntime
from harness.compile.oracle.rounding import (
    AMOUNT,
    coordinate_rounding,
    farthest,
    move_numbers,
)
from harness.measure.correctness import compare_answers

X = np.random.default_rng(0).standard_normal((1, 64)).astype(np.float32)


def network(nodes: Sequence[Any], weights: dict[str, Any], shape: Sequence[int] = (1, 64)) -> onnx.ModelProto:
    """A network of `x` that ends in `y`."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "small", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def rounding(model: onnx.ModelProto, x: np.ndarray = X) -> list[float]:
    """Of a network's one output."""
    return [one.rounding[SINGLE] for one in measure_leeway(model, {"x": x}, OnnxRuntime(model).ask({"x": x}))]


def test_a_difference_of_large_numbers_moves_far_and_a_sum_does_not() -> None:
    nodes = [helper.make_node("Add", ["x", "far"], ["there"]), helper.make_node("Sub", ["there", "far"], ["y"])]
    (near,) = rounding(network(nodes, {"far": np.float32(1.0)}))
    (far,) = rounding(network(nodes, {"far": np.float32(1000.0)}))
    assert near < 10 * AMOUNT[SINGLE]
    assert far > 100 * AMOUNT[SINGLE]


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([16, 64, 512]))
def test_sums_in_another_order_are_right(seed: int, depth: int, width: int) -> None:
    chance = np.random.default_rng(seed)
    weights = {f"w{i}": (chance.standard_normal((width, width)) * width**-0.5).astype(np.float32) for i in range(depth)}
    names = ["x", *(f"v{i}" for i in range(depth - 1)), "y"]
    nodes = [helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]]) for i in range(depth)]
    model, x = network(nodes, weights, (1, width)), chance.standard_normal((1, width)).astype(np.float32)
    truth = OnnxRuntime(model).ask({"x": x})
    answer = x
    for weight in weights.values():
        order = chance.permutation(width)
        products = (answer[:, order, None] * weight[order])[0]
        answer = np.add.accumulate(products, axis=0, dtype=np.float32)[-1:]
    factor, measured = ROUNDING_FACTOR["float32"], measure_leeway(model, {"x": x}, truth)
    allowed = [one.leeway(factor, "float32") for one in measured]
    moved = [factor * one.rounding[SINGLE] for one in measured]
    assert compare_answers([answer], truth, RELATIVE_TOLERANCE["float32"], moved, allowed).right


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([16, 64, 512]), st.sampled_from([0.0, 4.0, 64.0]))
def test_numbers_stored_in_half_precision_are_right(seed: int, depth: int, width: int, far: float) -> None:
    """Each result is added to a number and that is taken away again, which magnifies rounding."""
    chance = np.random.default_rng(seed)
    weights = {f"w{i}": (chance.standard_normal((width, width)) * width**-0.5).astype(np.float32) for i in range(depth)}
    nodes, name = [], "x"
    for layer in range(depth):
        there, back = f"there{layer}", "y" if layer == depth - 1 else f"v{layer}"
        nodes.append(helper.make_node("MatMul", [name, f"w{layer}"], [f"product{layer}"]))
        nodes.append(helper.make_node("Add", [f"product{layer}", "far"], [there]))
        nodes.append(helper.make_node("Sub", [there, "far"], [back]))
        name = back
    model = network(nodes, {**weights, "far": np.float32(far)}, (1, width))
    x = chance.standard_normal((1, width)).astype(np.float32)
    truth, half, single = OnnxRuntime(model).ask({"x": x}), np.float16, np.float32
    answer = x.astype(half)
    for weight in weights.values():
        product = (answer.astype(single) @ weight.astype(half).astype(single)).astype(half)
        answer = (product + half(far)) - half(far)
    leeway = [
        one.leeway(ROUNDING_FACTOR["float16_acc32"], "float16_acc32") for one in measure_leeway(model, {"x": x}, truth)
    ]
    least, rounding = RELATIVE_TOLERANCE["float16_acc32"], [one.rounding for one in leeway]
    assert compare_answers([answer.astype(single)], truth, least, rounding, leeway).right


def test_sums_in_float16_may_move_an_output_twice_as_far_as_sums_in_float32() -> None:
    nodes = [helper.make_node("Add", ["x", "far"], ["there"]), helper.make_node("Sub", ["there", "far"], ["y"])]
    model = network(nodes, {"far": np.float32(100.0)})
    truth = OnnxRuntime(model).ask({"x": X})
    measured, right = measure_leeway(model, {"x": X}, truth), {}
    for precision in ("float16", "float16_acc32"):
        leeway = [one.leeway(ROUNDING_FACTOR[precision], precision) for one in measured]
        rounding = [one.rounding for one in leeway]
        answer = truth[0] * np.float32(1 + 3 * measured[0].rounding[HALVES])
        right[precision] = compare_answers([answer], truth, RELATIVE_TOLERANCE[precision], rounding, leeway).right
    assert right == {"float16": True, "float16_acc32": False}


def test_bounds_scales_and_indices_are_kept() -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["negative"]),
        helper.make_node("Clip", ["negative", "low", "high"], ["clipped"]),
        helper.make_node("Floor", ["whole"], ["floor"]),
        helper.make_node("Add", ["clipped", "floor"], ["y"]),
    ]
    model = network(nodes, {"low": np.float32(-1), "high": np.float32(1), "whole": np.array([3.0], np.float32)})
    moved = {node.op_type: list(node.input) for node in move_numbers(model, tensor_types(model), 0).graph.node}
    assert moved["Clip"] == ["negative/moved", "low", "high"]
    assert moved["Floor"] == ["whole"]
    assert moved["Add"] == ["clipped/moved", "floor/moved"]


def test_integers_do_not_move_and_what_cannot_be_computed_is_not_known() -> None:
    integers = network([helper.make_node("ArgMax", ["x"], ["y"], axis=1)], {})
    integers.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    assert rounding(integers) == [0.0]
    unknown = network([helper.make_node("Nobody", ["x"], ["y"], domain="nowhere")], {})
    assert [one.rounding[SINGLE] for one in measure_leeway(unknown, {"x": X}, [X])] == [0.0]


@pytest.mark.parametrize(("mode", "least"), [("linear", 100 / 4), ("nearest", 0.0)])
def test_places_between_the_pixels_of_a_large_image_are_rounded(mode: str, least: float) -> None:
    nodes = [helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode=mode)]
    model = network(nodes, {"sizes": np.array([1, 1, 300, 20])}, (1, 1, 100, 10))
    assert coordinate_rounding(model, tensor_types(model)) == least


def test_a_bound_stops_the_rounding_of_half_precision() -> None:
    far = {"far": np.float32(30000.0)}
    sums = [helper.make_node("Add", ["x", "far"], ["s"]), helper.make_node("Sub", ["s", "far"], ["d"])]
    for last, proportional in (("Identity", True), ("Sigmoid", False)):
        model = network([*sums, helper.make_node(last, ["d"], ["y"])], far)
        (measured,) = measure_leeway(model, {"x": X}, OnnxRuntime(model).ask({"x": X}))
        ratio = measured.rounding[HALVES] / measured.rounding[SINGLE]
        assert (1000 < ratio < 4000) == proportional, ratio
        assert proportional or measured.rounding[HALVES] < 2


def test_a_network_in_half_precision_moves_no_further_than_the_same_one_in_single_precision() -> None:
    weight = (np.random.default_rng(1).standard_normal((64, 64)) / 8).astype(np.float16)
    (single,) = rounding(network([helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": weight.astype(np.float32)}))
    nodes = [
        helper.make_node("Cast", ["x"], ["half"], to=TensorProto.FLOAT16),
        helper.make_node("MatMul", ["half", "w"], ["product"]),
        helper.make_node("Cast", ["product"], ["y"], to=TensorProto.FLOAT),
    ]
    (half,) = rounding(network(nodes, {"w": weight}))
    assert half == pytest.approx(single, rel=0.5)


@pytest.mark.parametrize("shape", [(1, 63), (2, 64)])
def test_an_answer_of_another_shape_tells_nothing(shape: tuple[int, int]) -> None:
    model = network([helper.make_node("Relu", ["x"], ["y"])], {})
    assert [one.rounding[SINGLE] for one in measure_leeway(model, {"x": X}, [np.zeros(shape, np.float32)])] == [0.0]


def test_a_number_that_another_answer_lacks_counts_as_the_farthest() -> None:
    mine, other, none = np.array([1.0, 2.0, 3.0]), np.array([1.5, np.nan, 3.25]), np.full(3, np.nan)
    assert [distances.tolist() for distances in farthest([mine], [[other]])] == [[0.5, 0.5, 0.25]]
    assert all(np.isnan(distances).all() for distances in farthest([mine], [[none]]))
