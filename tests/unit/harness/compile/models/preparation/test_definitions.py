"""Operators that ONNX defines by others are written so, and no answer changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.outline import constant_of
from harness.compile.models.preparation import prepare
from harness.compile.models.preparation.definitions import DEFINED, write_definitions

SHAPE = (1, 4, 6, 6)
NODES: dict[str, tuple[int, dict[str, Any], dict[str, Any]]] = {
    "Celu": (12, {"alpha": 0.7}, {}),
    "CenterCropPad": (18, {"axes": [2, 3]}, {"size": np.array([4, 8])}),
    "GroupNormalization": (21, {"num_groups": 2}, {"scale": values(4, seed=1), "bias": values(4, seed=2)}),
    "NegativeLogLikelihoodLoss": (13, {"reduction": "sum"}, {"classes": np.arange(36).reshape(1, 6, 6) % 4}),
    "RotaryEmbedding": (23, {}, {"cosines": values(1, 6, 3, seed=1), "sines": values(1, 6, 3, seed=2)}),
    "SoftmaxCrossEntropyLoss": (13, {"ignore_index": 1}, {"classes": np.arange(36).reshape(1, 6, 6) % 4}),
}


@pytest.mark.parametrize("kind", NODES)
def test_an_operator_is_written_as_onnx_defines_it(kind: str) -> None:
    opset, attributes, weights = NODES[kind]
    node = helper.make_node(kind, ["x", *weights], ["y"], **attributes)
    model = network([node], {"x": SHAPE}, opset=opset, **weights)
    plain, said = changed(model, write_definitions)
    assert not set(kinds(plain)) & set(DEFINED)
    assert said == f"wrote 1 {kind} as ONNX defines them"
    x = values(*SHAPE)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], atol=1e-6)


def test_an_attention_is_written_as_onnx_defines_it() -> None:
    model = network([helper.make_node("Attention", ["x", "x", "x"], ["y"], is_causal=1)], {"x": (1, 2, 5, 4)}, opset=23)
    plain, _ = changed(model, write_definitions)
    assert "Attention" not in kinds(plain)
    x = values(1, 2, 5, 4)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], atol=1e-6)


@pytest.mark.parametrize("operands", [["x", "x", "x", ""], ["x", "x", "x", "", "x", "x"]])
def test_an_attention_without_some_of_its_operands_is_written_as_onnx_defines_it(operands: list[str]) -> None:
    results = ["y", "keys", "values"] if "" in operands[:-1] else ["y"]
    node = helper.make_node("Attention", operands, results, is_causal=1)
    plain, _ = changed(network([node], {"x": (1, 2, 5, 4)}, opset=23), write_definitions)
    assert "Attention" not in kinds(plain)


@pytest.mark.parametrize(("shape", "written"), [((1, 4, 6, 6), True), ((1, 6, 6), False)])
def test_a_norm_of_an_image_is_written_as_onnx_defines_it(shape: tuple[int, ...], written: bool) -> None:
    node = helper.make_node("RMSNormalization", ["x", "scale"], ["y"], axis=-2)
    model = network([node], {"x": shape}, opset=23, scale=values(6, 6, seed=1))
    plain, _ = changed(model, write_definitions)
    assert ("RMSNormalization" not in kinds(plain)) is written
    x = values(*shape)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], atol=1e-6)


@pytest.mark.parametrize("opset", [11, 18])
@given(axis=st.integers(-3, 2), order=st.sampled_from([1, 2]))
def test_a_vector_is_divided_by_its_norm_and_one_of_zeros_stays(opset: int, axis: int, order: int) -> None:
    node = helper.make_node("LpNormalization", ["x"], ["y"], axis=axis, p=order)
    model = network([node], {"x": (2, 3, 4)}, opset=opset)
    plain, said = changed(model, write_definitions)
    assert said == "wrote 1 LpNormalization as ONNX defines them"
    for x in (values(2, 3, 4), np.zeros((2, 3, 4), np.float32)):
        np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], atol=1e-6)


def test_constants_of_a_definition_become_tensors() -> None:
    _, attributes, weights = NODES["GroupNormalization"]
    node = helper.make_node("GroupNormalization", ["x", *weights], ["y"], **attributes)
    plain, _ = changed(network([node], {"x": SHAPE}, opset=21, **weights), prepare)
    constants = [node for node in plain.graph.node if node.op_type == "Constant"]
    assert all(constant_of(node) is not None for node in constants)


def test_an_operator_of_another_domain_stays() -> None:
    node = helper.make_node("Attention", ["x"], ["y"], domain="com.microsoft", num_heads=2)
    assert changed(network([node], {"x": SHAPE}), write_definitions)[1] == ""
