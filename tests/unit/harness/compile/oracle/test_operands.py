"""Which operands of an operator rounding moves."""

from __future__ import annotations

from functools import partial
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from harness.compile.models.outline import tensor_types
from harness.compile.oracle.operands import COMPARED, DATA, compared_operands, data_operands, decisions
from harness.compile.oracle.rounding import move_numbers

PARAMETERS = {
    "Pow": "exponent",
    "Clip": "min max",
    "Pad": "pads value axes",
    "Resize": "roi scales sizes",
    "Upsample": "scales",
    "TopK": "k",
    "CumSum": "axis",
    "Dropout": "ratio mode",
    "RoiAlign": "rois batches",
    "MaxRoiPool": "rois",
    "GridSample": "grid",
}
"""Operands that stay what they are, after the first, of every operator that computes with its first operand alone."""


def moved(node: Any, names: str) -> list[str]:
    """Which of these computed float32 operands of a node are moved."""
    value = partial(helper.make_tensor_value_info, elem_type=TensorProto.FLOAT, shape=[1])
    inputs = [value(f"{name}/input") for name in names.split()]
    computed = [helper.make_node("Neg", [f"{name}/input"], [name]) for name in names.split()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([*computed, node], "one", inputs, [output], value_info=list(map(value, names.split())))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    last = move_numbers(model, tensor_types(model), 0).graph.node[-1]
    return [name.removesuffix("/moved") for name in last.input if name.endswith("/moved")]


@pytest.mark.parametrize("operator", [name for name, places in DATA.items() if places])
def test_parameters_by_nature_stay_what_they_are(operator: str) -> None:
    names = f"x {PARAMETERS[operator]}"
    assert moved(helper.make_node(operator, names.split(), ["y"]), names) == ["x"]


@pytest.mark.parametrize("operator", [*(name for name, places in DATA.items() if not places), *COMPARED])
def test_operators_whose_operands_all_decide_something_move_none(operator: str) -> None:
    assert moved(helper.make_node(operator, ["a", "b"], ["y"]), "a b") == []


@pytest.mark.parametrize(
    ("operator", "names"),
    [
        ("Mul", "a b"),
        ("Gemm", "a b c"),
        ("Conv", "x w b"),
        ("BatchNormalization", "x scale b mean var"),
        ("LayerNormalization", "x scale b"),
        ("PRelu", "x slope"),
        ("LSTM", "x w r b"),
        ("Where", "a b"),
    ],
)
def test_an_operator_that_is_not_listed_computes_with_all_it_takes(operator: str, names: str) -> None:
    assert moved(helper.make_node(operator, names.split(), ["y"]), names) == names.split()


def test_operators_of_other_domains_are_left_alone() -> None:
    node = helper.make_node("Mul", ["a", "b"], ["y"], domain="com.example")
    assert list(data_operands(node)) == []
    assert list(compared_operands(node)) == []


@pytest.mark.parametrize(
    ("node", "decided"),
    [
        (helper.make_node("TopK", ["x", "k"], ["values", "places"]), ["places"]),
        (helper.make_node("MaxPool", ["x"], ["values", "places"], kernel_shape=[2]), ["places"]),
        (helper.make_node("MaxPool", ["x"], ["values"], kernel_shape=[2]), []),
        (helper.make_node("QuantizeLinear", ["x", "scale"], ["q"]), ["q"]),
        (helper.make_node("Cast", ["x"], ["i"], to=TensorProto.INT64), ["i"]),
        (helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16), []),
        (helper.make_node("Relu", ["x"], ["y"]), []),
    ],
)
def test_what_is_decided_is_a_place_a_whole_number_or_a_truth(node: onnx.NodeProto, decided: list[str]) -> None:
    assert decisions(node) == decided
