"""onnxruntime's own quantised operators come to the same numbers, but for ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.preparation.quantised import dequantise_weights, write_quantised_as_floats

SHAPE = (1, 4, 6, 6)
X, OTHER = ("x", "s", "z"), ("w", "t", "u")
RESULT = ("rs", "rz")


@pytest.mark.parametrize(
    ("operator", "inputs", "attributes"),
    [
        ("QLinearAdd", [*X, *OTHER, *RESULT], {}),
        ("QLinearMul", [*X, *OTHER, *RESULT], {}),
        ("QLinearSigmoid", [*X, *RESULT], {}),
        ("QLinearLeakyRelu", [*X, *RESULT], {"alpha": 0.2}),
        ("QLinearAveragePool", [*X, *RESULT], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 0, 0]}),
        ("QLinearGlobalAveragePool", [*X, *RESULT], {}),
        ("QLinearConcat", [*RESULT, *X, *OTHER], {"axis": 1}),
        ("QLinearSoftmax", [*X, *RESULT], {"axis": 1, "opset": 13}),
    ],
)
def test_the_numbers_are_the_same_but_for_ties(operator: str, inputs: list[str], attributes: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    scale = np.float32(1 / 256) if operator in ("QLinearSigmoid", "QLinearSoftmax") else np.float32(0.031)
    weights = {
        "s": np.float32(0.021),
        "z": np.uint8(120),
        "w": rng.integers(0, 255, SHAPE).astype(np.uint8),
        "t": np.float32(0.013),
        "u": np.uint8(131),
        "rs": scale,
        "rz": np.uint8(0 if scale < 0.01 else 125),
    }
    used = {name: array for name, array in weights.items() if name in inputs}
    node = helper.make_node(operator, inputs, ["y"], domain="com.microsoft", **attributes)
    model = network([node], {"x": SHAPE}, dtype=TensorProto.UINT8, **used)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    plain, said = changed(model, write_quantised_as_floats)
    assert said == f"wrote 1 {operator} between DequantizeLinear and QuantizeLinear"
    assert kinds(plain)[-1] == "QuantizeLinear"
    x = rng.integers(0, 255, SHAPE).astype(np.uint8)
    (wanted,), (got,) = answers(model, {"x": x}), answers(plain, {"x": x})
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    apart = np.abs(got.astype(int) - wanted.astype(int))
    assert apart.max() <= 1
    assert (apart > 0).mean() < 0.05


def test_a_product_of_two_computed_matrices_is_one_of_real_numbers() -> None:
    weights = {"s": np.float32(0.021), "z": np.uint8(120), "rs": np.float32(0.05), "rz": np.uint8(125)}
    inputs = ["x", "s", "z", "turned", "s", "z", *RESULT]
    nodes = [
        helper.make_node("Transpose", ["x"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("QLinearMatMul", inputs, ["y"]),
    ]
    model = network(nodes, {"x": SHAPE}, dtype=TensorProto.UINT8, **weights)
    plain, said = changed(model, write_quantised_as_floats)
    assert said == "wrote 1 QLinearMatMul between DequantizeLinear and QuantizeLinear"
    x = np.random.default_rng(0).integers(0, 255, SHAPE).astype(np.uint8)
    (wanted,), (got,) = answers(model, {"x": x}), answers(plain, {"x": x})
    np.testing.assert_allclose(got.astype(int), wanted.astype(int), atol=1)
    nodes[1].input[3] = "w"
    known = network(nodes, {"x": SHAPE}, dtype=TensorProto.UINT8, w=np.ones((6, 6), np.uint8), **weights)
    assert changed(known, write_quantised_as_floats)[1] == ""


def test_channels_that_come_last_stay() -> None:
    weights = {"s": np.float32(0.02), "z": np.uint8(120), "rs": np.float32(0.03), "rz": np.uint8(0)}
    inputs = [*X, *RESULT]
    node = helper.make_node("QLinearGlobalAveragePool", inputs, ["y"], domain="com.microsoft", channels_last=1)
    model = network([node], {"x": SHAPE}, dtype=TensorProto.UINT8, **weights)
    assert changed(model, write_quantised_as_floats)[1] == ""


@pytest.mark.parametrize("kind", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("block", [0, 2])
def test_constants_of_four_bits_are_dequantised(kind: int, block: int) -> None:
    numbers = np.arange(8 * 3).reshape(8, 3) % 8
    scales = np.linspace(0.1, 0.2, 12 if block else 3, dtype=np.float32).reshape((4, 3) if block else 3)
    attributes = {"axis": 0, "block_size": block} if block else {"axis": 1}
    nodes = [helper.make_node("DequantizeLinear", ["w", "s"], ["d"], **attributes)]
    model = network([*nodes, helper.make_node("MatMul", ["x", "d"], ["y"])], {"x": [2, 8]}, opset=21, s=scales)
    model.ir_version = 10
    model.graph.initializer.append(helper.make_tensor("w", kind, [8, 3], numbers.ravel().tolist()))
    plain, said = changed(model, dequantise_weights)
    assert (said, kinds(plain)) == ("computed 1 DequantizeLinear of constants of fewer than 8 bits", ["MatMul"])
    x = values(2, 8)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], rtol=1e-6)


def test_constants_of_eight_bits_stay_quantised() -> None:
    model = network(
        [helper.make_node("DequantizeLinear", ["w", "s"], ["d"]), helper.make_node("Add", ["x", "d"], ["y"])],
        {"x": [2]},
        w=np.array([1, 2], np.int8),
        s=np.float32(0.5),
    )
    assert changed(model, dequantise_weights)[1] == ""
