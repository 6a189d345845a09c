"""One call of each kind is legalised as all calls are."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from tvm import relax, tirx
from tvm.relax.frontend.onnx import from_onnx

from harness.compile.compiler.compat import structural_hash
from harness.compile.compiler.pass_runner import StepFailed, run_step
from harness.tools.ops.distinct_calls import with_distinct_calls

ROUNDS = 5
WEIGHTS = {"w0": np.ones((4, 4), "f4"), "w1": np.zeros((4, 4), "f4"), "two": np.float32(2), "three": np.float32(3)}


def module(nodes: list[Any], kind: int = TensorProto.FLOAT) -> Any:
    x, y = helper.make_tensor_value_info("x", kind, [4, 4]), helper.make_tensor_value_info("y", kind, None)
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in WEIGHTS.items()]
    graph = helper.make_graph(nodes, "net", [x], [y], weights)
    return from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))


def recurrence() -> list[Any]:
    """Rounds alike but for the values of a weight, then calls that differ in a number, an attribute, or a shape."""
    nodes, last = [], "x"
    for place in range(ROUNDS):
        nodes += [
            helper.make_node("MatMul", [last, f"w{place % 2}"], [f"product{place}"]),
            helper.make_node("Split", [f"product{place}"], [f"left{place}", f"right{place}"], axis=1),
            helper.make_node("Concat", [f"right{place}", f"left{place}"], [f"round{place}"], axis=1),
        ]
        last = f"round{place}"
    return [
        *nodes,
        helper.make_node("Mul", [last, "two"], ["doubled"]),
        helper.make_node("Mul", ["doubled", "three"], ["tripled"]),
        helper.make_node("Softmax", ["tripled"], ["rows"], axis=0),
        helper.make_node("Softmax", ["rows"], ["columns"], axis=1),
        helper.make_node("ReduceSum", ["columns"], ["narrow"], keepdims=1),
        helper.make_node("Mul", ["narrow", "columns"], ["wide"]),
        helper.make_node("Mul", ["wide", "columns"], ["y"]),
    ]


def branch() -> list[Any]:
    """A choice by the input, between calls that are made before it as well."""
    branches = [
        helper.make_graph(
            [helper.make_node(kind, ["x"], [f"in_{kind}"]), helper.make_node("Abs", [f"in_{kind}"], [f"out_{kind}"])],
            kind,
            [],
            [helper.make_tensor_value_info(f"out_{kind}", TensorProto.FLOAT, [4, 4])],
        )
        for kind in ("Relu", "Neg")
    ]
    return [
        helper.make_node("Neg", ["x"], ["negative"]),
        helper.make_node("Neg", ["negative"], ["positive"]),
        helper.make_node("ReduceSum", ["positive"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "two"], ["large"]),
        helper.make_node("If", ["large"], ["chosen"], then_branch=branches[0], else_branch=branches[1]),
        helper.make_node("Neg", ["chosen"], ["y"]),
    ]


def functions(mod: Any) -> set[int]:
    legal = relax.transform.LegalizeOps()(mod)
    return {structural_hash(function) for function in legal.functions.values() if isinstance(function, tirx.PrimFunc)}


def calls(mod: Any) -> Counter[str]:
    values = (binding.value for block in mod["main"].body.blocks for binding in block.bindings)
    return Counter(value.op.name.removeprefix("relax.") for value in values if isinstance(value, relax.Call))


@pytest.mark.parametrize("nodes", [recurrence(), branch()], ids=["recurrence", "branch"])
def test_tvm_legalises_one_call_of_each_kind_as_it_does_all(nodes: list[Any]) -> None:
    mod = module(nodes)
    assert functions(with_distinct_calls(mod)) == functions(mod)


def test_only_calls_of_another_kind_are_left() -> None:
    whole, distinct = (calls(mod) for mod in (module(recurrence()), with_distinct_calls(module(recurrence()))))
    assert whole["matmul"] == whole["split"] == whole["concat"] == ROUNDS
    assert distinct["matmul"] == distinct["split"] == distinct["concat"] == 1
    assert distinct["multiply"] == whole["multiply"] == 4, "by two, by three, of one number, of alike"
    assert distinct["nn.softmax"] == whole["nn.softmax"] == 2


def test_what_tvm_does_not_legalise_is_refused_in_the_same_words() -> None:
    nodes = [
        helper.make_node("Add", ["x", "x"], ["a"]),
        helper.make_node("Pow", ["a", "a"], ["b"]),
        helper.make_node("Pow", ["b", "b"], ["y"]),
    ]
    said = set()
    for mod in (module(nodes, TensorProto.INT64), with_distinct_calls(module(nodes, TensorProto.INT64))):
        with pytest.raises(StepFailed) as failed:
            run_step("LegalizeOps", relax.transform.LegalizeOps(), mod)
        said.add((failed.value.place, str(failed.value)))
    assert len(said) == 1
