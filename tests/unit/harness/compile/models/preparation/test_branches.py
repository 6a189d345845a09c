"""The branch that a constant condition takes replaces an If."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from small_networks import answers, changed, kinds, network, values

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


def test_an_if_that_an_input_decides_stays() -> None:
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["m"], keepdims=0),
        helper.make_node("Cast", ["m"], ["flag"], to=TensorProto.BOOL),
        choice(
            "flag",
            branch([helper.make_node("Neg", ["x"], ["t"])], "t"),
            branch([helper.make_node("Relu", ["x"], ["e"])], "e"),
            "y",
        ),
    ]
    plain, said = changed(network(nodes, {"x": [3]}), prepare)
    assert "If" in kinds(plain)
    assert said == ["left 1 If to its inputs, of which one branch is judged: y (--fix INPUT=NUMBER chooses for good)"]
