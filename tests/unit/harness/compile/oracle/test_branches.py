"""Rounding is measured inside the branch of an If that is decided beforehand."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper
from small_networks import answers, kinds, network, values

from harness.compile.models.spec import FixedInput, InputSpec
from harness.compile.oracle.branches import take_decided_branches
from harness.compile.oracle.rounding import measure_rounding


def choice() -> Any:
    """A large number is added and taken away in one branch, where an input decides."""

    def branch(name: str, *nodes: Any) -> Any:
        return helper.make_graph(nodes, name, [], [helper.make_empty_tensor_value_info(name)])

    then = branch("t", helper.make_node("Add", ["x", "big"], ["s"]), helper.make_node("Sub", ["s", "big"], ["t"]))
    nodes = [
        helper.make_node("Cast", ["rate"], ["flag"], to=9),
        helper.make_node(
            "If", ["flag"], ["y"], then_branch=then, else_branch=branch("e", helper.make_node("Neg", ["x"], ["e"]))
        ),
    ]
    return network(nodes, {"x": ["n", 4], "rate": []}, big=np.float32(1e4))


def test_what_a_branch_magnifies_is_seen() -> None:
    inputs = {"x": values(2, 4), "rate": np.array(1, np.float32)}
    right = answers(choice(), inputs)
    plain = take_decided_branches(choice(), [FixedInput(InputSpec("rate", ()), 1.0)], inputs, right)
    assert kinds(plain.model) == ["Add", "Sub"]
    assert [*plain.inputs] == ["x"]
    assert (
        max(measure_rounding(plain.model, plain.inputs, right)) > 1e-4 > max(measure_rounding(choice(), inputs, right))
    )


def test_a_network_that_answers_otherwise_or_has_no_branch_is_measured_as_it_is() -> None:
    inputs = {"x": values(2, 4), "rate": np.array(1, np.float32)}
    other = take_decided_branches(choice(), [FixedInput(InputSpec("rate", ()), 0.0)], inputs, answers(choice(), inputs))
    assert kinds(other.model) == ["Cast", "If"]
    model = network([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]})
    assert take_decided_branches(model, [], {"x": values(2)}, []).model is model
