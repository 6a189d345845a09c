"""The branch that a constant condition takes replaces an If."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network, values

from harness.compile.models.outline import inner_graphs
from harness.compile.models.preparation import prepare


def branch(nodes: list[Any], *outputs: str) -> Any:
    return helper.make_graph(nodes, "branch", [], [helper.make_empty_tensor_value_info(name) for name in outputs])


def choice(condition: str, then: Any, otherwise: Any, output: str) -> Any:
    return helper.make_node("If", [condition], [output], name=output, then_branch=then, else_branch=otherwise)


@pytest.mark.parametrize("rate", [8000, 16000])
def test_the_branch_that_is_taken_stands_in_the_network(rate: int) -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Equal", ["rate", "high"], ["is_high"]),
        choice(
            "is_high",
            branch([helper.make_node("Relu", ["a"], ["t"])], "t"),
            branch([helper.make_node("Abs", ["a"], ["e"]), helper.make_node("Add", ["e", "x"], ["f"])], "f"),
            "b",
        ),
        helper.make_node("Mul", ["b", "b"], ["y"]),
    ]
    model = network(nodes, {"x": [2, 3]}, rate=np.array(rate), high=np.array(16000))
    plain, said = changed(model, prepare)
    assert kinds(plain) == (["Neg", "Relu", "Mul"] if rate == 16000 else ["Neg", "Abs", "Add", "Mul"])
    taken = "then" if rate == 16000 else "else"
    assert said[-1] == f"kept one branch of 1 If whose condition is constant: {taken} of b"
    x = values(2, 3)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


def test_a_branch_in_a_branch_and_a_shape_that_one_reveals() -> None:
    inner = choice(
        "is_flat",
        branch([helper.make_node("Relu", ["t"], ["u"])], "u"),
        branch([helper.make_node("Neg", ["t"], ["v"])], "v"),
        "w",
    )
    nodes = [
        choice(
            "yes",
            branch(
                [
                    helper.make_node("Unsqueeze", ["x", "axis"], ["t"]),
                    helper.make_node("Shape", ["t"], ["shape"]),
                    helper.make_node("Size", ["shape"], ["rank"]),
                    helper.make_node("Equal", ["rank", "two"], ["is_flat"]),
                    inner,
                ],
                "w",
            ),
            branch([helper.make_node("Identity", ["x"], ["e"])], "e"),
            "y",
        )
    ]
    model = network(nodes, {"x": [2, 3]}, yes=np.array(True), axis=np.array([0]), two=np.array(2))
    plain, _ = changed(model, prepare)
    assert kinds(plain) == ["Unsqueeze", "Neg"]
    x = values(2, 3)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


@pytest.mark.parametrize("reader", ["SequenceAt", "ConcatFromSequence"])
@pytest.mark.parametrize("positive", [True, False])
def test_what_reads_a_sequence_that_an_if_chooses_reads_both(reader: str, positive: bool) -> None:
    read = {"SequenceAt": (["s", "last"], {}), "ConcatFromSequence": (["s"], {"axis": 1})}
    names, attributes = read[reader]
    split = {"SequenceAt": "halves", "ConcatFromSequence": "quarters"}[reader]  # sequences of several lengths, joined
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "zero"], ["yes"]),
        choice(
            "yes",
            branch([helper.make_node("SplitToSequence", ["x", "halves"], ["t"], axis=1)], "t"),
            branch(
                [
                    helper.make_node("Neg", ["x"], ["n"]),
                    helper.make_node("SplitToSequence", ["n", split], ["e"], axis=1),
                ],
                "e",
            ),
            "s",
        ),
        helper.make_node(reader, names, ["y"], name="reader", **attributes),
    ]
    weights = {"zero": np.float32(0), "halves": np.array(4), "quarters": np.array(2), "last": np.array(-1)}
    model = network(nodes, {"x": [2, 8]}, **weights)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4 if reader == "SequenceAt" else 8])
    model.graph.output[0].CopyFrom(y)
    plain, said = changed(model, prepare)
    assert kinds(plain).count(reader) == 2
    assert kinds(plain)[-1] == "Where"
    assert "computed both branches of 1 If, of which one branch is judged: s (" in said[0]
    x = np.abs(values(2, 8)) * (1 if positive else -1)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


def two_or_three() -> list[Any]:
    """Choose `s` by the largest of `x`: twice `x`, or three times."""
    return [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Greater", ["most", "zero"], ["yes"]),
        choice(
            "yes",
            branch([helper.make_node("SequenceConstruct", ["x", "x"], ["t"])], "t"),
            branch([helper.make_node("SequenceConstruct", ["x", "x", "x"], ["e"])], "e"),
            "s",
        ),
    ]


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("writer", ["SequenceInsert", "SequenceErase"])
def test_a_chosen_sequence_may_be_changed_and_counted(writer: str, positive: bool) -> None:
    nodes = [
        *two_or_three(),
        helper.make_node(writer, ["s", "x" if writer == "SequenceInsert" else "first"], ["changed"]),
        helper.make_node("SequenceLength", ["changed"], ["count"]),
        helper.make_node("Cast", ["count"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["x", "number"], ["y"]),
    ]
    model = network(nodes, {"x": [2, 8]}, zero=np.float32(0), first=np.array(0))
    plain, _ = changed(model, prepare)
    assert kinds(plain).count("SequenceLength") == 2
    assert "If" not in kinds(plain)
    x = np.abs(values(2, 8)) * (1 if positive else -1)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


@pytest.mark.parametrize("positive", [True, False])
def test_what_reads_a_choice_of_several_shapes_is_computed_of_both(positive: bool) -> None:
    """TVM builds no operator of a shape that an input decides; the last result has one that none decides."""
    nodes = [
        *two_or_three(),
        helper.make_node("ConcatFromSequence", ["s"], ["wide"], axis=1),
        helper.make_node("Abs", ["wide"], ["far"]),
        helper.make_node("Mul", ["wide", "far"], ["product"]),
        helper.make_node("Split", ["product", "halves"], ["above", "below"], axis=0),
        helper.make_node("Sub", ["above", "below"], ["difference"]),
        helper.make_node("ReduceSum", ["difference", "axis"], ["sum"], keepdims=0),
        helper.make_node("Neg", ["sum"], ["y"]),
    ]
    weights = {"zero": np.float32(0), "halves": np.array([1, 1]), "axis": np.array([1])}
    model = network(nodes, {"x": [2, 8]}, **weights)
    plain, _ = changed(model, prepare)
    assert "If" not in kinds(plain)
    assert kinds(plain)[-2:] == ["Where", "Neg"]
    assert kinds(plain).count("Split") == 2
    x = np.abs(values(2, 8)) * (1 if positive else -1)
    np.testing.assert_array_equal(answers(plain, {"x": x})[0], answers(model, {"x": x})[0])


def test_a_branch_may_end_in_what_stands_outside_or_in_its_own_weight() -> None:
    weight = helper.make_tensor("c", TensorProto.FLOAT, [3], [1, 2, 3])
    then = branch([], "c", "x")
    then.initializer.append(weight)
    otherwise = branch([helper.make_node("Neg", ["x"], ["n"])], "n", "n")
    node = helper.make_node("If", ["yes"], ["p", "q"], then_branch=then, else_branch=otherwise)
    model = network([node, helper.make_node("Add", ["p", "q"], ["y"])], {"x": [3]}, yes=np.array(True))
    plain, _ = changed(model, prepare)
    assert kinds(plain) == ["Add"]
    np.testing.assert_array_equal(answers(plain, {"x": np.ones(3, np.float32)})[0], [2, 3, 4])


def decided(then: Any, otherwise: Any, *outputs: str, **weights: Any) -> onnx.ModelProto:
    """A network whose only input `x` of [2, 4] decides an If: `then` if its largest number is above 0."""
    choose = helper.make_node("If", ["flag"], list(outputs), name="side", then_branch=then, else_branch=otherwise)
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=1),
        helper.make_node("Reshape", ["m", "one"], ["high"]),
        helper.make_node("Greater", ["high", "zero"], ["flag"]),
        choose,
    ]
    return network(nodes, {"x": [2, 4]}, list(outputs), one=np.array([1]), zero=np.float32(0), **weights)


def require_same_answers(plain: onnx.ModelProto, model: onnx.ModelProto) -> None:
    """Both branches are taken."""
    x = np.abs(values(2, 4))
    for numbers in (x, -x):
        for got, right in zip(answers(plain, {"x": numbers}), answers(model, {"x": numbers}), strict=True):
            np.testing.assert_array_equal(got, right, strict=True)


def test_an_if_that_an_input_decides_chooses_between_the_results_of_both_branches() -> None:
    then = branch(
        [helper.make_node("Neg", ["x"], ["t"]), helper.make_node("ReduceSum", ["t"], ["s"], keepdims=0)], "t", "s"
    )
    otherwise = branch(
        [helper.make_node("Relu", ["x"], ["t"]), helper.make_node("ReduceMax", ["t"], ["s"], keepdims=0)], "t", "s"
    )
    model = decided(then, otherwise, "y", "z")
    plain, said = changed(model, prepare)
    assert kinds(plain)[3:] == ["Neg", "ReduceSum", "Relu", "ReduceMax", "Reshape", "Where", "Where"]
    assert said == [
        "computed both branches of 1 If, of which one branch is judged: side (--fix INPUT=NUMBER chooses for good)"
    ]
    require_same_answers(plain, model)


def test_what_a_branch_holds_is_prepared() -> None:
    """TVM's importer has no LpNormalization, wherever it stands."""
    then = branch([helper.make_node("LpNormalization", ["x"], ["t"], axis=1)], "t")
    otherwise = branch([helper.make_node("CumSum", ["x", "axis"], ["e"])], "e")
    plain, _ = changed(decided(then, otherwise, "y", axis=np.array(1)), prepare)
    assert not {"If", "LpNormalization", "CumSum"} & {*kinds(plain)}


def test_an_if_inside_a_branch_and_a_loop_inside_that() -> None:
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["going"], ["on"]), helper.make_node("Add", ["a", "x"], ["b"])],
        "body",
        [
            value("round", TensorProto.INT64, []),
            value("going", TensorProto.BOOL, []),
            value("a", TensorProto.FLOAT, [2, 4]),
        ],
        [value("on", TensorProto.BOOL, []), value("b", TensorProto.FLOAT, [2, 4])],
    )
    loop = helper.make_node("Loop", ["rounds", "", "x"], ["sum"], body=body)
    inner = choice("flag", branch([loop], "sum"), branch([helper.make_node("Neg", ["x"], ["n"])], "n"), "w")
    model = decided(branch([inner], "w"), branch([helper.make_node("Abs", ["x"], ["e"])], "e"), "y", rounds=np.array(2))
    plain, said = changed(model, prepare)
    assert not {"If", "Loop"} & {*kinds(plain)}
    assert "of 2 If, of which one branch is judged: side, side/then/w" in said[0]
    require_same_answers(plain, model)


def test_results_of_other_shapes_are_left_to_an_if() -> None:
    then = branch(
        [helper.make_node("LpNormalization", ["x"], ["t"], axis=1), helper.make_node("Neg", ["x"], ["u"])], "t", "u"
    )
    otherwise = branch(
        [helper.make_node("Slice", ["x", "one", "two", "one"], ["e"]), helper.make_node("Abs", ["x"], ["u"])], "e", "u"
    )
    plain, _ = changed(decided(then, otherwise, "y", "z", two=np.array([2])), prepare)
    assert kinds(plain)[-2:] == ["If", "Where"]
    assert "LpNormalization" not in kinds(plain)
    inside = [node.op_type for graph in inner_graphs(plain.graph.node[-2]) for node in graph.node]
    assert inside == ["Identity"] * 2
    require_same_answers(plain, decided(then, otherwise, "y", "z", two=np.array([2])))
