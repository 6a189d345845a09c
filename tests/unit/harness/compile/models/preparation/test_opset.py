"""Operator sets before 10, and `Resize` of 10, are converted into networks that onnxruntime computes alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.outline import opset_of
from harness.compile.models.preparation.loops import unroll_loops
from harness.compile.models.preparation.opset import (
    CONVERTED_TO,
    convert_opset,
    inline_functions,
    widen_bfloats,
)

SHAPE = (1, 4, 5, 7)
SCALES = np.array([1, 1, 2.5, 1.4], np.float32)


@pytest.mark.parametrize(
    ("node", "opset", "weights"),
    [
        (helper.make_node("Slice", ["x"], ["y"], axes=[1, 2], starts=[1, 0], ends=[3, -1]), 9, {}),
        (helper.make_node("Upsample", ["x", "s"], ["y"], mode="nearest"), 9, {"s": SCALES}),
        (helper.make_node("Upsample", ["x", "s"], ["y"], mode="linear"), 9, {"s": SCALES}),
        (helper.make_node("Resize", ["x", "s"], ["y"], mode="nearest"), 10, {"s": SCALES}),
        (helper.make_node("Resize", ["x", "s"], ["y"], mode="nearest"), 10, {"s": 1 / SCALES}),
        (helper.make_node("Resize", ["x", "s"], ["y"], mode="linear"), 10, {"s": 1 / SCALES}),
        (helper.make_node("Clip", ["x"], ["y"], min=0.0, max=0.5), 7, {}),
        (helper.make_node("Softmax", ["x"], ["y"], axis=1), 9, {}),
        (helper.make_node("Pad", ["x"], ["y"], pads=[0, 0, 1, 2, 0, 0, 0, 1], value=0.5), 9, {}),
        (helper.make_node("Dropout", ["x"], ["y"]), 7, {}),
        (helper.make_node("ReduceSum", ["x"], ["y"], axes=[-1], keepdims=0), 9, {}),
        (
            helper.make_node("BatchNormalization", ["x", *"abcd"], ["y"]),
            7,
            {name: np.abs(values(4, seed=seed)) for seed, name in enumerate("abcd")},
        ),
    ],
)
def test_an_old_network_is_converted(node: Any, opset: int, weights: dict[str, Any]) -> None:
    model = network([node], {"x": SHAPE}, opset=opset, **weights)
    plain, said = changed(model, convert_opset)
    assert said == f"converted operator set {opset} to {CONVERTED_TO}"
    x = values(*SHAPE)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


@pytest.mark.parametrize(("kind", "opset"), [("Upsample", 9), ("Resize", 10)])
def test_images_within_an_old_network_are_enlarged_as_before(kind: str, opset: int) -> None:
    """The converter gives results other names, unless they are the network's."""
    nodes = [
        helper.make_node(kind, ["x", "s"], ["wide"], mode="linear"),
        helper.make_node(kind, ["wide", "s"], ["wider"], mode="nearest"),
        helper.make_node("Relu", ["wider"], ["y"]),
    ]
    model = network(nodes, {"x": SHAPE}, opset=opset, s=SCALES)
    plain, _ = changed(model, convert_opset)
    x = values(*SHAPE)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


@pytest.mark.parametrize(("kind", "opset"), [("Upsample", 9), ("Resize", 10)])
def test_images_in_a_branch_of_an_old_network_are_enlarged_as_before(kind: str, opset: int) -> None:
    branches = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(kind, ["x", "s"], [name], mode=mode)],
            name,
            [],
            [helper.make_empty_tensor_value_info(name)],
        )
        for name, mode in (("then", "linear"), ("else", "nearest"))
    }
    node = helper.make_node("If", ["yes"], ["y"], **branches)
    x = values(*SHAPE)
    for yes in (True, False):
        model = network([node], {"x": SHAPE}, opset=opset, s=SCALES, yes=yes)
        plain, said = changed(model, convert_opset)
        assert said == f"converted operator set {opset} to {CONVERTED_TO}"
        np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


def test_an_old_file_whose_weights_are_no_inputs_is_converted() -> None:
    """As onnxruntime reads it, though the format asks for them before its fourth version."""
    node = helper.make_node("Add", ["x", "w"], ["y"])
    model = network([node], {"x": SHAPE}, opset=8, w=values(4, 1, 1))
    model.ir_version = 3
    assert changed(model, convert_opset)[1] == f"converted operator set 8 to {CONVERTED_TO}"


@pytest.mark.parametrize("opset", [8, 10])
def test_what_need_not_be_converted_may_stay(opset: int) -> None:
    node = helper.make_node("Affine", ["x"], ["y"])  # which no operator set has any longer
    plain, said = changed(network([node], {"x": SHAPE}, opset=opset), convert_opset)
    assert (opset_of(plain), said) == (opset, "")


def test_a_scan_with_a_batch_keeps_its_inputs() -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("a", "b", "c", "d")]
    nodes = [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Identity", ["c"], ["d"])]
    body = helper.make_graph(nodes, "body", ends[:2], ends[2:])
    node = helper.make_node("Scan", ["", "start", "x"], ["end", "y"], num_scan_inputs=1, body=body)
    model = network([node], {"start": (1, 2), "x": (1, 3, 2)}, opset=8)
    plain, said = changed(model, convert_opset)
    assert (opset_of(plain), said, unroll_loops(plain)) == (8, "", "")


@pytest.mark.parametrize("given", [{}, {"slope": 0.25}])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_call_of_a_function_keeps_the_defaults_of_its_attributes(depth: int, given: dict[str, float]) -> None:
    """The inliner of onnx 1.23 takes a slope of 0.01, that of LeakyRelu itself, where the function says 0.5."""
    steep = helper.make_node("LeakyRelu", ["a"], ["b"])
    steep.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    own, slope = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)], [helper.make_attribute("slope", 0.5)]
    call = helper.make_node("Steep", ["a"], ["b"], domain="own", **given)
    functions = [
        helper.make_function("own", "Steep", ["a"], ["b"], [steep], own, attribute_protos=slope),
        helper.make_function("own", "Outer", ["a"], ["b"], [call], own),
    ]
    outer = helper.make_node("Outer", ["x"], ["y"], domain="own")
    outermost = outer if depth == 2 else helper.make_node("Steep", ["x"], ["y"], domain="own", **given)
    model = network([outermost], {"x": SHAPE})
    model.opset_import.append(own[1])
    model.functions.extend(functions)
    plain, said = changed(model, inline_functions)
    assert (kinds(plain), said) == (["LeakyRelu"], "inlined 2 functions")
    x = values(*SHAPE)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


def test_bfloat16_is_computed_in_float32() -> None:
    """TVM's OpenCL code of it does not compile, and onnxruntime has few operators of it."""
    numbers = [0.5, 1.5, -2, 3, 1, 0.25, 8]
    weight = helper.make_tensor("w", TensorProto.BFLOAT16, [7], numbers)
    nodes = [
        helper.make_node("Cast", ["x"], ["small"], to=TensorProto.BFLOAT16),
        helper.make_node("Mul", ["small", "w"], ["product"]),
        helper.make_node("Tanh", ["product"], ["bounded"]),
        helper.make_node("Cast", ["bounded"], ["y"], to=TensorProto.FLOAT),
    ]
    model = network(nodes, {"x": SHAPE})
    model.graph.initializer.append(weight)
    plain, said = changed(model, widen_bfloats)
    assert said == "computed bfloat16 in float32"
    assert changed(plain, widen_bfloats)[1] == ""
    x = values(*SHAPE)
    expected = np.tanh(x * np.array(numbers, np.float32))
    np.testing.assert_allclose(answers(plain, {"x": x})[0], expected, atol=1e-6)
