"""Networks of some hundred bytes that were made to take for ever, or all memory: each is refused, and in one line."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.base.failures import ModelError
from harness.compile.models.limited_fork import run_limited
from harness.compile.models.preparation import prepare
from harness.compile.models.sources import OnnxFile

OPSETS = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]


def children() -> set[str]:
    """Process ids of what this process started and has not waited for."""
    return {pid for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


def network(nodes: list[Any], functions: tuple[Any, ...] = (), **weights: Any) -> onnx.ModelProto:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=OPSETS, functions=functions, ir_version=8)


def function(name: str, calls: list[str], **more: Any) -> onnx.FunctionProto:
    """A function that calls others one after the other, or an operator."""
    names = ["a", *(f"t{place}" for place in range(len(calls)))]
    nodes = [
        helper.make_node(call, [names[at]], [names[at + 1]], domain="own" if call.islower() else "")
        for at, call in enumerate(calls)
    ]
    return helper.make_function("own", name, ["a"], [names[-1]], nodes, OPSETS)


def nested() -> onnx.ModelProto:
    """Functions that call each other: 10^12 operators."""
    made = [function("f0", ["Relu"] * 10), *(function(f"f{at}", [f"f{at - 1}"] * 10) for at in range(1, 12))]
    return network([helper.make_node("f11", ["x"], ["y"], domain="own")], tuple(made))


def heavy() -> onnx.ModelProto:
    """A function with a large constant, called often."""
    constant = numpy_helper.from_array(np.zeros(1 << 18, np.float32), "c")
    body = [helper.make_node("Constant", [], ["c"], value=constant), helper.make_node("Relu", ["a"], ["b"])]
    own = helper.make_function("own", "f", ["a"], ["b"], body, OPSETS)
    names = ["x", *(f"t{place}" for place in range(2999)), "y"]
    return network([helper.make_node("f", [names[at]], [names[at + 1]], domain="own") for at in range(3000)], (own,))


def circle() -> onnx.ModelProto:
    made = function("f", ["g"]), function("g", ["f"])
    return network([helper.make_node("f", ["x"], ["y"], domain="own")], made)


def chain() -> onnx.ModelProto:
    """Each function calls the next: deeper than any stack."""
    made = [function("f0", ["Relu"]), *(function(f"f{at}", [f"f{at - 1}"]) for at in range(1, 2000))]
    return network([helper.make_node("f1999", ["x"], ["y"], domain="own")], tuple(made))


@pytest.mark.parametrize("make", [nested, heavy, circle, chain])
def test_functions_are_counted_before_they_are_inlined(tmp_path: Path, make: Callable[[], onnx.ModelProto]) -> None:
    file = tmp_path / "n.onnx"
    file.write_bytes(make().SerializeToString())
    with pytest.raises(ModelError, match=r"once its functions are inlined|calls itself, or others too deep"):
        OnnxFile("n", file).onnx_file(tmp_path)


def test_functions_of_a_network_that_is_no_larger_than_others_are_inlined(tmp_path: Path) -> None:
    file = tmp_path / "n.onnx"
    made = (function("f", ["Relu", "Neg"]), function("g", ["f", "f"]))
    file.write_bytes(network([helper.make_node("g", ["x"], ["y"], domain="own")], made).SerializeToString())
    prepared = onnx.load(OnnxFile("n", file).onnx_file(tmp_path))
    assert [node.op_type for node in prepared.graph.node] == ["Relu", "Neg"] * 2


def windows() -> tuple[Any, dict[str, Any]]:
    window = helper.make_node("MaxPool", ["c"], ["q"], kernel_shape=[2000, 2000], pads=[1000] * 4)
    return window, {"c": np.ones((1, 1, 40, 40), np.float32)}


def pads() -> tuple[Any, dict[str, Any]]:
    pad = helper.make_node("Pad", ["c", "by"], ["q"])
    return pad, {"c": np.ones((1, 4), np.float32), "by": np.array([0, 1 << 33, 0, -(1 << 33)])}


def a_range() -> tuple[Any, dict[str, Any]]:
    ends = {"c": np.float32(0), "d": np.float32(1e10), "e": np.float32(1)}
    return helper.make_node("Range", [*ends], ["q"]), ends


@pytest.mark.parametrize("make", [windows, pads, a_range])
def test_what_takes_more_than_its_result_is_left_to_the_compiler(
    make: Callable[[], tuple[Any, dict[str, Any]]],
) -> None:
    node, weights = make()
    rest = [helper.make_node("ReduceMax", ["q"], ["s"], keepdims=0), helper.make_node("Add", ["x", "s"], ["y"])]
    model = network([node, *rest], **weights)
    assert prepare(model) == []


class TestConfined:
    def test_work_that_ends_well_is_answered(self, tmp_path: Path) -> None:
        assert run_limited(tmp_path, lambda: ["a" * (1 << 20)]) == ["a" * (1 << 20)]

    def test_it_is_done_in_another_process(self, tmp_path: Path) -> None:
        assert run_limited(tmp_path, os.getpid) != os.getpid()

    def test_a_failure_arrives_with_its_hint(self, tmp_path: Path) -> None:
        def fail() -> None:
            raise ModelError("it is bad", hint="mend it")

        with pytest.raises(ModelError, match="it is bad: mend it"):
            run_limited(tmp_path, fail)

    @pytest.mark.parametrize(
        ("work", "why"),
        [
            (lambda: int("x"), "ValueError"),
            (lambda: os.kill(os.getpid(), signal.SIGSEGV), "SIGSEGV"),
            (lambda: time.sleep(600), "within 0 s"),
            (lambda: bytearray(1 << 40), "too much memory"),
            (lambda: os._exit(3), "exit 3"),
        ],
    )
    def test_whatever_ends_it_is_one_line_about_the_file(
        self, tmp_path: Path, work: Callable[[], object], why: str
    ) -> None:
        with pytest.raises(ModelError, match=why) as caught:
            run_limited(tmp_path, work, deadline_s=0.2 if why == "within 0 s" else 60)
        assert str(tmp_path) in caught.value.message

    def test_nothing_is_left_of_it(self, tmp_path: Path) -> None:
        before = children()
        with pytest.raises(ModelError):
            run_limited(tmp_path, lambda: time.sleep(600), deadline_s=0.1)
        assert children() <= before
