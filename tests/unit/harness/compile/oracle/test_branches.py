"""Which branch of an If was judged."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness.compile.oracle.branches import branches_taken


def branch(*nodes: Any) -> Any:
    """A branch that ends in the result of its last operator."""
    end = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    return helper.make_graph(list(nodes), "branch", [], [end])


def choice(condition: str, then: Any, otherwise: Any, output: str) -> Any:
    return helper.make_node("If", [condition], [output], name=output, then_branch=then, else_branch=otherwise)


def network(*nodes: Any) -> onnx.ModelProto:
    """Of `x`, with the flag `loud`."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [3]),
        helper.make_tensor_value_info("loud", TensorProto.BOOL, []),
    ]
    ends = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])]
    bound = numpy_helper.from_array(np.float32(2), "bound")
    graph = helper.make_graph(list(nodes), "small", inputs, ends, [bound])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def neg(source: str, output: str) -> Any:
    return helper.make_node("Neg", [source], [output])


def is_large(source: str, output: str) -> list[Any]:
    return [
        helper.make_node("ReduceMax", [source], [f"{output}/max"], keepdims=0),
        helper.make_node("Greater", [f"{output}/max", "bound"], [output]),
    ]


def taken(model: onnx.ModelProto, *numbers: float, loud: bool = True) -> list[str]:
    return branches_taken(model, {"x": np.array(numbers, np.float32), "loud": np.array(loud)})


def test_the_branch_is_that_of_what_the_network_computes() -> None:
    model = network(*is_large("x", "c"), choice("c", branch(neg("x", "t")), branch(neg("x", "e")), "y"))
    assert taken(model, 1, 2, 3) == ["then of y"]
    assert taken(model, 1, 2, 1) == ["else of y"]


def test_an_input_may_be_the_condition_of_several() -> None:
    first = choice("loud", branch(neg("x", "t")), branch(neg("x", "e")), "a")
    model = network(first, choice("loud", branch(neg("a", "t2")), branch(neg("a", "e2")), "y"))
    assert taken(model, 1, 1, 1, loud=False) == ["else of a", "else of y"]


def test_an_if_inside_the_branch_that_is_taken_is_named_and_no_other() -> None:
    def inner(name: str) -> Any:
        choices = choice(f"{name}/c", branch(neg("x", f"{name}/t")), branch(neg("x", f"{name}/e")), name)
        return branch(*is_large("x", f"{name}/c"), choices)

    model = network(choice("loud", inner("p"), inner("q"), "y"))
    names = taken(model, 1, 2, 3)
    assert names == ["then of y/then/p", "then of y"]
    assert taken(model, 1, 2, 1, loud=False) == ["else of y/else/q", "else of y"]


def test_a_network_without_an_if_has_none() -> None:
    assert taken(network(neg("x", "y")), 1, 2, 3) == []
