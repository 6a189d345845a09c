"""Operators that ONNX defines by others are written so, and no answer changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from small_networks import answers, changed, kinds, network, values

from harness.base.failures import ModelError
from harness.compile.models.outline import constant_of
from harness.compile.models.preparation import prepare
from harness.compile.models.preparation.definitions import DEFINED, write_definitions
from harness.compile.oracle.onnx_runtime import OnnxRuntime

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


@pytest.mark.parametrize("dtype", [TensorProto.FLOAT, TensorProto.INT64])
@pytest.mark.parametrize(
    "attributes", [{"offset": [0.5, 1, -2], "scale": [2.0, 0.3, 1]}, {"offset": [0.5], "scale": [0.1]}]
)
def test_a_scaler_of_sklearn_is_a_difference_and_a_product(attributes: dict[str, Any], dtype: int) -> None:
    scaler = helper.make_node("Scaler", ["x"], ["s"], domain="ai.onnx.ml", **attributes)
    model = network([scaler, helper.make_node("Neg", ["s"], ["y"])], {"x": (2, 3)}, dtype=dtype)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 1))
    model.graph.output[0].type.CopyFrom(helper.make_tensor_type_proto(TensorProto.FLOAT, (2, 3)))
    plain, said = changed(model, write_definitions)
    assert kinds(plain) == ["Cast", "Sub", "Mul", "Neg"]
    assert said == "wrote 1 Scaler as ONNX defines them"
    assert not changed(plain, write_definitions)[1]
    x = (4 * values(2, 3)).astype(helper.tensor_dtype_to_np_dtype(dtype))
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


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


@pytest.mark.parametrize("mask", ["input", "constant"])
def test_a_query_that_sees_no_key_is_found_without_a_maximum(mask: str) -> None:
    seen = np.tril(np.ones((5, 5), bool), -1)
    weights: dict[str, Any] = {"seen": seen} if mask == "constant" else {}
    node = helper.make_node("Attention", ["x", "x", "x", "seen"], ["y"])
    model = network([node], {"x": (1, 2, 5, 4)}, opset=23, **weights)
    inputs = {"x": values(1, 2, 5, 4)}
    if mask == "input":
        model.graph.input.append(helper.make_tensor_value_info("seen", TensorProto.BOOL, (5, 5)))
        inputs["seen"] = seen
    plain, _ = changed(model, prepare)
    assert "ReduceMax" not in kinds(plain)  # TVM's of a row of -inf is the lowest finite number
    (expected,) = ReferenceEvaluator(model).run(None, inputs)
    assert not expected[0, :, 0].any()
    np.testing.assert_allclose(answers(plain, inputs)[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "axis", "written"), [((1, 4, 6, 6), -2, True), ((1, 6, 6), -2, False), ((6, 6), 0, True)]
)
def test_a_norm_of_an_image_or_of_all_axes_is_written_as_onnx_defines_it(
    shape: tuple[int, ...], axis: int, written: bool
) -> None:
    node = helper.make_node("RMSNormalization", ["x", "scale"], ["y"], axis=axis)
    model = network([node], {"x": shape}, opset=23, scale=values(6, 6, seed=1))
    plain, _ = changed(model, write_definitions)
    assert ("RMSNormalization" not in kinds(plain)) is written
    x = values(*shape)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], atol=1e-6)


@pytest.mark.parametrize(("results", "written"), [(["y"], False), (["y", "mean"], False), (["y", "", "s"], True)])
def test_a_layer_norm_whose_statistics_are_read_is_written_as_onnx_defines_it(
    results: list[str], written: bool
) -> None:
    node = helper.make_node("LayerNormalization", ["x", "scale"], results)
    model = network([node], {"x": (2, 6)}, ["y", *results[2:]], scale=values(6, seed=1))
    plain, _ = changed(model, write_definitions)
    assert ("LayerNormalization" not in kinds(plain)) is written
    x = values(2, 6)
    for mine, right in zip(answers(plain, {"x": x}), answers(model, {"x": x}), strict=True):
        np.testing.assert_allclose(mine, right, atol=1e-6)


@pytest.mark.parametrize(("axis", "written"), [(-1, False), (3, False), (2, True), (-3, True), (1, True)])
def test_a_layer_norm_over_several_axes_of_images_is_written_as_onnx_defines_it(axis: int, written: bool) -> None:
    shape = (2, 3, 4, 5)
    node = helper.make_node("LayerNormalization", ["x", "scale"], ["y"], axis=axis)
    model = network([node], {"x": shape}, scale=values(*shape[axis:], seed=1))
    plain, _ = changed(model, write_definitions)
    assert ("LayerNormalization" not in kinds(plain)) is written
    x = values(*shape)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], atol=1e-6)


@pytest.mark.parametrize("kind", ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare"])
@pytest.mark.parametrize("axes", [[], ["axes"]])
def test_a_reduction_over_no_axes_still_changes_each_number(kind: str, axes: list[str]) -> None:
    node = helper.make_node(kind, ["x", *axes], ["y"], noop_with_empty_axes=1)
    model = network([node], {"x": (2, 3)}, opset=18, axes=np.array([], np.int64))
    plain, said = changed(model, write_definitions)
    assert said == f"wrote 1 {kind} as ONNX defines them"
    assert set(kinds(plain)) & {"Abs", "Log", "Mul"}
    x = np.abs(values(2, 3))
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], rtol=1e-6)


def test_a_definition_in_defined_operators_is_written_out() -> None:
    nodes = [helper.make_node("Swish", ["x"], ["s"]), helper.make_node("SwiGLU", ["s", "x"], ["y"])]
    model = network(nodes, {"x": (2, 3)}, opset=28)
    plain, said = changed(model, write_definitions)
    assert said == "wrote 1 SwiGLU and 1 Swish as ONNX defines them"
    assert not {"SwiGLU", "Swish"} & set(kinds(plain))
    inputs = {"x": values(2, 3)}
    expected = ReferenceEvaluator(model).run(None, inputs)[0]
    np.testing.assert_allclose(ReferenceEvaluator(plain).run(None, inputs)[0], expected, atol=1e-6)


HEADS = {"update_rule": "linear", "q_num_heads": 2, "kv_num_heads": 2}


@pytest.mark.parametrize(
    ("kind", "operands", "attributes"),
    [("LinearAttention", ["x", "x", "x"], HEADS), ("CausalConvWithState", ["x", "weight"], {"activation": "silu"})],
)
def test_what_keeps_a_state_is_written_for_a_known_length(
    kind: str, operands: list[str], attributes: dict[str, Any]
) -> None:
    node = helper.make_node(kind, operands, ["y", "state"], **attributes)
    model = network([node], {"x": (1, 8, 8)}, ["y", "state"], opset=27, weight=values(8, 1, 3, seed=1))
    plain, _ = changed(model, prepare)
    assert not {kind, "Scan"} & set(kinds(plain))
    inputs = {"x": values(1, 8, 8)}
    expected = ReferenceEvaluator(model).run(None, inputs)
    for mine, right in zip(ReferenceEvaluator(plain).run(None, inputs), expected, strict=True):
        np.testing.assert_allclose(mine, right, atol=1e-5)


@pytest.mark.parametrize("opset", [11, 18])
@given(axis=st.integers(-3, 2), order=st.sampled_from([1, 2]))
def test_a_vector_is_divided_by_its_norm_and_one_of_zeros_stays(opset: int, axis: int, order: int) -> None:
    node = helper.make_node("LpNormalization", ["x"], ["y"], axis=axis, p=order)
    model = network([node], {"x": (2, 3, 4)}, opset=opset)
    plain, said = changed(model, write_definitions)
    assert said == "wrote 1 LpNormalization as ONNX defines them"
    for x in (values(2, 3, 4), np.zeros((2, 3, 4), np.float32)):
        np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], atol=1e-6)


@pytest.mark.parametrize("opset", [9, 13, 18])
@pytest.mark.parametrize("axes", [[0, 2, 3], [1], [2, 3]])
def test_numbers_are_divided_by_their_deviation_and_constant_ones_are_zero(opset: int, axes: list[int]) -> None:
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=axes)
    model = network([node], {"x": (2, 3, 4, 5)}, opset=opset)
    plain, said = changed(model, write_definitions)
    assert said == "wrote 1 MeanVarianceNormalization as ONNX defines them"
    x = values(2, 3, 4, 5)
    right: Any = (x - x.mean(tuple(axes), keepdims=True)) / x.std(tuple(axes), keepdims=True)
    for judge in (OnnxRuntime(plain), OnnxRuntime(model)):
        np.testing.assert_allclose(np.asarray(judge.ask({"x": x})[0], np.float32), right, atol=1e-5)
        for number in (0.1, 0.3, 0.7, 1 / 3, 11.1, 1e-5):  # whose sum is no multiple
            np.testing.assert_array_equal(judge.ask({"x": np.full_like(x, number)})[0], 0)


@pytest.mark.parametrize(("given", "axes"), [({}, "0, 2, 3"), ({"axes": [0, 5]}, "0, 5")])
def test_axes_that_a_tensor_lacks_are_the_models_mistake(given: dict[str, Any], axes: str) -> None:
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], name="norm", **given)
    said = rf"MeanVarianceNormalization 'norm' is over axes \[{axes}\] of 'x', which has 3 axes: export it"
    with pytest.raises(ModelError, match=said):
        prepare(network([node], {"x": (2, 5, 6)}))


def test_constants_of_a_definition_become_tensors() -> None:
    _, attributes, weights = NODES["GroupNormalization"]
    node = helper.make_node("GroupNormalization", ["x", *weights], ["y"], **attributes)
    plain, _ = changed(network([node], {"x": SHAPE}, opset=21, **weights), prepare)
    constants = [node for node in plain.graph.node if node.op_type == "Constant"]
    assert all(constant_of(node) is not None for node in constants)


def test_an_operator_of_another_domain_stays() -> None:
    node = helper.make_node("Attention", ["x"], ["y"], domain="com.microsoft", num_heads=2)
    assert changed(network([node], {"x": SHAPE}), write_definitions)[1] == ""


@pytest.mark.parametrize("kind", ["If", "Loop"])
def test_what_branches_and_bodies_hold_is_prepared_as_well(kind: str) -> None:
    """TVM's importer has no LpNormalization, wherever it stands."""
    inner = [helper.make_node("LpNormalization", ["x"], ["inner"], axis=1)]
    ends = [helper.make_tensor_value_info("inner", TensorProto.FLOAT, [2, 3])]
    if kind == "If":
        branches = {f"{name}_branch": helper.make_graph(inner, name, [], ends) for name in ("then", "else")}
        node = helper.make_node("If", ["yes"], ["y"], **branches)
        model = network([node], {"x": (2, 3)}, yes=np.array(True))
    else:
        go_on = helper.make_tensor_value_info("go_on", TensorProto.BOOL, [])
        given = [helper.make_tensor_value_info("round", TensorProto.INT64, []), go_on]
        body = helper.make_graph(inner, "body", given, [go_on, *ends])
        node = helper.make_node("Loop", ["rounds", "yes"], ["y"], body=body)
        model = network([node], {"x": (2, 3)}, rounds=np.array(2), yes=np.array(True))
    plain, _ = changed(model, prepare)
    assert not {kind, "LpNormalization"} & set(kinds(plain))
    x = values(2, 3)
    np.testing.assert_allclose(answers(plain, {"x": x})[0], answers(model, {"x": x})[0], atol=1e-6)
