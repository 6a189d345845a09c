"""A network cut into pieces: every piece computes what the whole network computes there."""

from typing import Any

import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from harness.tools.explain.pieces import CuttableNetwork, Piece, with_shapes

SHAPE = (2, 3)


def value(name: str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE)


def a_model(nodes: list[Any], outputs: list[str], weights: dict[str, Any] | None = None, *, ir_version: int = 8) -> Any:
    tensors = [numpy_helper.from_array(np.asarray(array, "float32"), name) for name, array in (weights or {}).items()]
    inputs = [
        value("x"),
        *([helper.make_tensor_value_info(t.name, 1, t.dims) for t in tensors] if ir_version < 4 else []),
    ]
    graph = helper.make_graph(nodes, "net", inputs, [value(name) for name in outputs], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=ir_version)


def everything(model: Any) -> dict[str, Any]:
    """Every tensor of a network, by the definition of its operators."""
    told = onnx.ModelProto()
    told.CopyFrom(model)
    del told.graph.output[:]
    names = [name for node in model.graph.node for name in node.output if name]
    told.graph.output.extend(value(name) for name in names)
    x = np.linspace(-1, 1, 6, dtype="float32").reshape(SHAPE)
    return {"x": x, **dict(zip(names, ReferenceEvaluator(told).run(None, {"x": x}), strict=True))}


def computes_the_same(piece: Piece, known: dict[str, Any]) -> None:
    values = {name: known[name] for name in piece.inputs}
    model = with_shapes(piece, values).proto()
    onnx.checker.check_model(model)
    got = ReferenceEvaluator(model).run(None, values)
    for name, array in zip(piece.outputs, got, strict=True):
        np.testing.assert_array_equal(array, known[name])


@st.composite
def networks(draw: st.DrawFn) -> Any:
    """Operators that read any earlier tensors and weights, some of them made by a node."""
    nodes = [helper.make_node("Neg", ["w"], ["w_neg"])]
    tensors, alive = ["x", "w", "w_neg"], {"x"}
    for number in range(draw(st.integers(1, 7))):
        kind, count = draw(st.sampled_from([("Relu", 1), ("Add", 2), ("Mul", 2), ("Sum", 3)]))
        reads = draw(st.lists(st.sampled_from(tensors), min_size=count, max_size=count))
        reads[0] = reads[0] if alive & {*reads} else "x"
        nodes.append(helper.make_node(kind, reads, [f"t{number}"]))
        tensors.append(f"t{number}")
        alive.add(f"t{number}")
    return a_model(nodes, [tensors[-1]], {"w": np.full(SHAPE, 0.5)}, ir_version=draw(st.sampled_from([3, 8])))


@settings(max_examples=20)
@given(networks())
def test_every_piece_computes_what_the_network_does(model: Any) -> None:
    known, network = everything(model), CuttableNetwork(model)
    count = len(network.operators)
    for number in range(1, count + 1):
        beginning = network.first(number)
        assert [one.number for one in beginning.operators] == list(range(1, number + 1))
        computes_the_same(beginning, known)
        for depth in range(1, count + 1):
            computes_the_same(network.around(number, depth), known)
        computes_the_same(network.making(network.operators[number - 1].makes), known)


def test_all_that_crosses_a_cut_is_an_output() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="left"),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["y"]),
    ]
    network = CuttableNetwork(a_model(nodes, ["y"]))
    assert [network.first(count).outputs for count in (1, 2, 3)] == [("a",), ("a", "b"), ("y",)]
    assert [str(operator) for operator in network.operators] == ["Relu left", "Neg b", "Add y"]
    assert network.shape("b") == SHAPE


def test_what_an_inner_graph_reads_from_outside_is_an_input() -> None:
    then, other = (helper.make_graph([helper.make_node(k, ["a"], [k])], k, [], [value(k)]) for k in ("Abs", "Neg"))
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["flag"], to=TensorProto.BOOL),
        helper.make_node("If", ["flag"], ["y"], then_branch=then, else_branch=other),
    ]
    piece = CuttableNetwork(a_model(nodes, ["y"])).around(4, 1)
    assert piece.inputs == ("flag", "a")
