"""Operators are sorted; those that are in order keep their places."""

from __future__ import annotations

import onnx
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper
from small_networks import changed, kinds, network

from harness.compile.models.preparation.order import sort_operators

NODES = [
    helper.make_node("Relu", ["x"], ["a"]),
    helper.make_node("Neg", ["a"], ["b"]),
    helper.make_node("Abs", ["x"], ["c"]),
    helper.make_node("Add", ["b", "c"], ["y"]),
]


@given(st.permutations(NODES))
def test_any_order_becomes_a_valid_one(nodes: list[onnx.NodeProto]) -> None:
    model, said = changed(network(nodes, {"x": [2]}), sort_operators)
    made = {"x"}
    for node in model.graph.node:
        assert made >= {*node.input}
        made |= {*node.output}
    assert said == ("" if kinds(model) == [node.op_type for node in nodes] else "sorted the operators")


def test_what_a_graph_inside_reads_comes_before_it() -> None:
    def branch(name: str) -> onnx.GraphProto:
        nodes = [helper.make_node("Neg", [f"{name}1"], [f"{name}2"]), helper.make_node("Relu", ["a"], [f"{name}1"])]
        return helper.make_graph(nodes, name, [], [helper.make_empty_tensor_value_info(f"{name}2")])

    nodes = [
        helper.make_node("If", ["flag"], ["y"], then_branch=branch("t"), else_branch=branch("e")),
        helper.make_node("Relu", ["x"], ["a"]),
    ]
    model, _ = changed(network(nodes, {"x": [2], "flag": []}), sort_operators)
    assert kinds(model) == ["Relu", "If"]
    assert [node.op_type for node in model.graph.node[1].attribute[0].g.node] == ["Relu", "Neg"]


def test_a_circle_is_left_to_the_checker() -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Neg", ["a"], ["b"])]
    assert changed(network(nodes, {"x": [2]}, ["b"]), sort_operators)[1] == ""
