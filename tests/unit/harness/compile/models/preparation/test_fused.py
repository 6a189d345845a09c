"""What onnxruntime's optimiser fused comes to the same numbers in ONNX's own operators."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.outline import NetworkView, check
from harness.compile.models.preparation import prepare
from harness.compile.models.preparation.fused import write_fused

ROW = (2, 3, 8)
VECTORS = {name: values(8, seed=seed) for seed, name in enumerate("gab")}


def fused(operator: str, inputs: list[str], outputs: tuple[str, ...] = ("y",), **attributes: Any) -> Any:
    """A node of onnxruntime's own domain."""
    return helper.make_node(operator, inputs, outputs, domain="com.microsoft", **attributes)


def optimised(
    nodes: list[Any], shapes: Mapping[str, tuple[int, ...]], *outputs: str, opset: int = 17, **weights: Any
) -> Any:
    """A network with operators of that domain."""
    model = network(nodes, shapes, outputs or ("y",), opset=opset, **weights)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return model


def require_same(model: Any, **inputs: Any) -> tuple[Any, str]:
    """Return the network without fused operators, and what the step said; its numbers are those of the file."""
    plain, said = changed(model, write_fused)
    assert {node.op_type for node in plain.graph.node if node.domain} <= {"BiasGelu"}
    for wanted, got in zip(answers(model, inputs), answers(plain, inputs), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=2e-6)
    return plain, said


@pytest.mark.parametrize("opset", [13, 18])
def test_a_norm_by_the_root_of_mean_squares_which_is_in_the_domain_of_onnx(opset: int, tmp_path: Path) -> None:
    norm = helper.make_node("SimplifiedLayerNormalization", ["x", "g"], ["n"], axis=-1, epsilon=1e-3)
    product = fused("FusedMatMul", ["n", "x"], transB=1)
    model = optimised([norm, product], {"x": ROW}, opset=opset, g=VECTORS["g"])
    check(tmp_path / "optimised.onnx", model)
    plain, _ = require_same(model, x=values(*ROW))
    assert not {"SimplifiedLayerNormalization", "FusedMatMul"} & {*kinds(plain)}


def test_a_matrix_product_of_tensors_of_unknown_shape() -> None:
    nodes = [fused("Another", ["x"], ("q",)), fused("FusedMatMul", ["q", "q"], alpha=0.25)]
    assert kinds(changed(optimised(nodes, {"x": (3, 3)}), write_fused)[0]) == ["Another", "MatMul", "Mul"]


@pytest.mark.parametrize(("alpha", "operators"), [(1.702, ["Mul", "Sigmoid", "Mul"]), (1.0, ["Sigmoid", "Mul"])])
def test_a_gate_by_the_sigmoid_of_a_multiple(alpha: float, operators: list[str]) -> None:
    model = optimised([fused("QuickGelu", ["x"], alpha=alpha)], {"x": ROW})
    plain, _ = require_same(model, x=values(*ROW))
    assert kinds(plain) == operators


def test_a_convolution_in_a_branch() -> None:
    conv = fused("FusedConv", ["x", "w"], ("t",), pads=[1, 1, 1, 1], activation="Relu")
    branches = {
        name: helper.make_graph([node], name, [], [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)])
        for name, node in {"then_branch": conv, "else_branch": helper.make_node("Neg", ["x"], ["t"])}.items()
    }
    branch = helper.make_node("If", ["on"], ["y"], **branches)
    model = optimised([branch], {"x": (1, 3, 6, 6)}, w=values(3, 3, 3, 3), on=np.array(True))
    plain, _ = changed(model, prepare)
    assert kinds(plain) == ["Conv", "Relu"]


ACTIVATIONS: list[dict[str, Any]] = [
    {"activation": "Relu"},
    {"activation": "LeakyRelu", "activation_params": [0.2]},
    {"activation": "Clip", "activation_params": [-0.5, 0.75]},
    {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
]


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda each: each["activation"])
def test_a_convolution_with_its_activation(activation: dict[str, Any], opset: int) -> None:
    node = fused("FusedConv", ["x", "w", "b"], pads=[1, 1, 1, 1], strides=[2, 2], **activation)
    weights = {"w": values(4, 3, 3, 3), "b": values(4)}
    plain, said = require_same(optimised([node], {"x": (1, 3, 6, 6)}, opset=opset, **weights), x=values(1, 3, 6, 6))
    assert (kinds(plain), said) == (
        ["Conv", activation["activation"]],
        "took 1 FusedConv of onnxruntime's optimiser apart",
    )


def test_a_convolution_with_a_sum_before_its_activation() -> None:
    node = fused("FusedConv", ["x", "w", "b", "x"], pads=[1, 1, 1, 1], activation="Relu")
    weights = {"w": values(3, 3, 3, 3), "b": values(3)}
    plain, _ = require_same(optimised([node], {"x": (1, 3, 6, 6)}, **weights), x=values(1, 3, 6, 6))
    assert kinds(plain) == ["Conv", "Add", "Relu"]


def test_a_gemm_with_its_activation() -> None:
    node = fused("FusedGemm", ["x", "w"], transB=1, alpha=0.5, activation="LeakyRelu", activation_alpha=0.1)
    require_same(optimised([node], {"x": (2, 8)}, w=values(5, 8)), x=values(2, 8))


@pytest.mark.parametrize(("left", "right"), [(0, 1), (1, 0), (0, 0)])
def test_a_matrix_product_of_turned_matrices(left: int, right: int) -> None:
    shapes = {"x": (2, 5, 3) if left else (2, 3, 5), "z": (2, 4, 5) if right else (2, 5, 4)}
    node = fused("FusedMatMul", ["x", "z"], transA=left, transB=right, alpha=0.125)
    require_same(optimised([node], shapes), x=values(*shapes["x"]), z=values(*shapes["z"]))


@pytest.mark.parametrize("inputs", ["xzg", "xzga", "xzgab"])
def test_a_sum_that_is_normalised_is_an_output_as_well(inputs: str) -> None:
    node = fused("SkipLayerNormalization", list(inputs), ("y", "", "", "sum"), epsilon=1e-5)
    model = optimised([node], {"x": ROW, "z": ROW}, "y", "sum", **VECTORS)
    require_same(model, x=values(*ROW), z=values(*ROW, seed=1))


def test_shapes_are_known_behind_a_norm_of_an_older_operator_set() -> None:
    nodes = [
        fused("SkipLayerNormalization", ["x", "x", "g", "a"], ("n",)),
        fused("BiasGelu", ["n", "b"], ("h",)),
        fused("FusedMatMul", ["h", "h"], transB=1),
    ]
    plain, said = require_same(optimised(nodes, {"x": ROW}, opset=13, **VECTORS), x=values(*ROW))
    assert NetworkView(plain).shape("y") == (2, 3, 3)
    assert said == "took 1 FusedMatMul and 1 SkipLayerNormalization of onnxruntime's optimiser apart"


@pytest.mark.parametrize("bias", [[], ["b"]])
def test_a_product_of_bytes(bias: list[str]) -> None:
    weights = {"w": np.arange(40, dtype=np.int8).reshape(8, 5), "s": np.float32(0.02), "b": values(5), "t": np.uint8(3)}
    dynamic = fused("DynamicQuantizeMatMul", ["x", "w", "s", "", *bias])
    plain, _ = require_same(optimised([dynamic], {"x": ROW}, **weights), x=values(*ROW))
    assert kinds(plain)[:2] == ["DynamicQuantizeLinear", "MatMulInteger"]
    rounded = helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "qs", "qz"])
    whole = fused("MatMulIntegerToFloat", ["q", "w", "qs", "s", "qz", "", *bias])
    require_same(optimised([rounded, whole], {"x": ROW}, **weights), x=values(*ROW))


def test_what_cannot_be_taken_apart_stays() -> None:
    nodes = [
        fused("FusedMatMul", ["x", "x"], ("y",), transBatchA=1, transBatchB=1, transB=1),
        fused("SkipLayerNormalization", ["x", "x", "g", "a"], ("n", "mean")),
    ]
    plain, said = changed(optimised(nodes, {"x": ROW}, "y", "n", **VECTORS), write_fused)
    assert (kinds(plain), said) == (["FusedMatMul", "SkipLayerNormalization"], "")
