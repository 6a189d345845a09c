"""Products of integers come to the same integers in float32."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network

from harness.compile.models.preparation.integers import write_integers_as_floats


def integers(low: int, high: int, *shape: int) -> Any:
    return np.random.default_rng([high, *shape]).integers(low, high, shape, endpoint=True)


def quantised_conv(channels: int, outputs: int, *, group: int = 1, each: bool, signed: bool, bias: bool) -> Any:
    kind = np.int8 if signed else np.uint8
    low, high = (-127, 127) if signed else (0, 255)
    weight = integers(low, high, outputs, channels // group, 3, 3)
    count = (outputs,) if each else ()
    weights = {
        "s": np.float32(0.02),
        "z": np.uint8(121),
        "w": weight.astype(kind),
        "ws": np.abs(np.random.default_rng(1).normal(0.01, 0.002, count)).astype(np.float32),
        "wz": np.full(count, 0 if signed else 128, kind),
        "ys": np.float32(0.03 * channels),
        "yz": np.uint8(100),
    }
    if bias:
        weights["b"] = integers(-5000, 5000, outputs).astype(np.int32)
    node = helper.make_node("QLinearConv", ["x", *weights], ["y"], group=group, pads=[1, 0, 1, 2], strides=[1, 2])
    return network([node], {"x": [1, channels, 6, 7]}, dtype=TensorProto.UINT8, **weights)


def require_same(model: Any) -> list[str]:
    """Return the operators of the plain network, after it gave exactly the same integers."""
    plain, said = changed(model, write_integers_as_floats)
    assert said
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    x = integers(0, 255, *shape).astype(np.uint8)
    (wanted,), (got,) = answers(model, {"x": x}), answers(plain, {"x": x})
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)
    assert wanted.min() < wanted.max()
    return kinds(plain)


@settings(max_examples=25, deadline=None)
@given(st.booleans(), st.booleans(), st.booleans(), st.sampled_from([1, 4]))
def test_a_quantised_convolution_is_exact(each: bool, signed: bool, bias: bool, group: int) -> None:
    assert "Conv" in require_same(quantised_conv(8, 8, group=group, each=each, signed=signed, bias=bias))


def test_sums_beyond_what_float32_holds_are_added_as_integers() -> None:
    operators = require_same(quantised_conv(256, 4, each=True, signed=True, bias=True))
    assert operators.count("Conv") == 3
    assert operators.count("Add") == 3


def test_groups_with_sums_beyond_what_float32_holds_stay() -> None:
    model = quantised_conv(512, 8, group=2, each=True, signed=False, bias=False)
    assert changed(model, write_integers_as_floats)[1] == ""


@pytest.mark.parametrize("length", [16, 2000])
def test_products_of_matrices_are_exact(length: int) -> None:
    weights = {
        "s": np.float32(0.02),
        "z": np.uint8(121),
        "w": integers(-127, 127, length, 6).astype(np.int8),
        "ws": np.full(6, 0.01, np.float32),
        "wz": np.zeros(6, np.int8),
        "ys": np.float32(0.5),
        "yz": np.uint8(100),
    }
    node = helper.make_node("QLinearMatMul", ["x", *weights], ["y"])
    operators = require_same(network([node], {"x": [2, 3, length]}, dtype=TensorProto.UINT8, **weights))
    assert operators.count("MatMul") == (1 if length == 16 else 3)


@pytest.mark.parametrize("channels", [4, 256])
def test_a_convolution_of_integers_gives_integers(channels: int) -> None:
    weights = {"w": integers(0, 255, 5, channels, 3, 3).astype(np.uint8), "z": np.uint8(3), "wz": np.uint8(130)}
    node = helper.make_node("ConvInteger", ["x", "w", "z", "wz"], ["y"])
    require_same(network([node], {"x": [1, channels, 5, 5]}, dtype=TensorProto.UINT8, **weights))


def test_a_convolution_without_zero_points_is_exact() -> None:
    node = helper.make_node("ConvInteger", ["x", "w"], ["y"])
    weights = integers(0, 255, 5, 4, 3, 3).astype(np.uint8)
    require_same(network([node], {"x": [1, 4, 5, 5]}, dtype=TensorProto.UINT8, w=weights))


def test_a_zero_point_may_be_computed() -> None:
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ]
    model = network(nodes, {"x": [3, 8]}, w=integers(-127, 127, 8, 5).astype(np.int8))
    plain, _ = changed(model, write_integers_as_floats)
    assert "MatMulInteger" not in kinds(plain)
    x = np.random.default_rng(0).standard_normal((3, 8)).astype(np.float32)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


@pytest.mark.parametrize("real", [False, True])
def test_a_quantised_gemm_is_exact(real: bool) -> None:
    weights = {
        "s": np.float32(0.02),
        "z": np.uint8(121),
        "w": integers(-127, 127, 6, 16).astype(np.int8),
        "ws": np.full(6, 0.01, np.float32),
        "wz": np.zeros(6, np.int8),
        "b": integers(-5000, 5000, 6).astype(np.int32),
        **({} if real else {"ys": np.float32(0.5), "yz": np.uint8(100)}),
    }
    node = helper.make_node("QGemm", ["x", *weights], ["y"], transB=1, domain="com.microsoft")
    model = network([node], {"x": [3, 16]}, dtype=TensorProto.UINT8, **weights)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    assert require_same(model).count("MatMul") == 1
