"""onnxruntime's own quantised operators come to the same numbers, but for ties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network

from harness.compile.models.preparation.quantised import write_quantised_as_floats

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


def test_channels_that_come_last_stay() -> None:
    weights = {"s": np.float32(0.02), "z": np.uint8(120), "rs": np.float32(0.03), "rz": np.uint8(0)}
    inputs = [*X, *RESULT]
    node = helper.make_node("QLinearGlobalAveragePool", inputs, ["y"], domain="com.microsoft", channels_last=1)
    model = network([node], {"x": SHAPE}, dtype=TensorProto.UINT8, **weights)
    assert changed(model, write_quantised_as_floats)[1] == ""
