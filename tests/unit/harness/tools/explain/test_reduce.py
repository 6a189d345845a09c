"""Shrinking networks whose defect is known, without a compiler."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from fake_records import a_record
from fake_trials import FakeTrials
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from device_runner.deadline import Deadline
from harness.base.outcome import Outcome
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.tools.explain.reduce_command import _text
from harness.tools.explain.reduce_search import minimal_subset, shrink, steps
from harness.tools.explain.reduced_folder import write_folder
from harness.tools.explain.reduced_network import SmallNetwork
from harness.tools.explain.reduction import FailureKind, Reduction, reduce_case
from harness.tools.zoo.graph_layers import ImageGraph

PLENTY_S = 1500.0


def quietly(_line: str) -> None:
    """Nobody listens."""


@given(st.sets(st.integers(0, 30), min_size=1, max_size=4), st.integers(31, 40))
def test_what_is_left_is_what_is_needed_and_nothing_else(needed: set[int], count: int) -> None:
    found = minimal_subset(range(count), lambda some: needed <= set(some), Deadline(PLENTY_S))
    assert set(found) == needed


def test_without_time_the_smallest_so_far_is_the_answer() -> None:
    assert minimal_subset([1, 2, 3], lambda _: pytest.fail("must not be tried"), Deadline(0.0)) == [1, 2, 3]


def depthwise() -> SmallNetwork:
    net = ImageGraph("net", (1, 16, 14, 14))
    conv = net.conv(net.input, 16, 3, stride=2, pad=1, groups=16)
    model = net.finish((net.relu(conv), (1, 16, 7, 7))).to_bytes()
    x = np.ones((1, 16, 14, 14), np.float32)
    return SmallNetwork(model, {onnx.load_model_from_string(model).graph.input[0].name: x})


def attribute(network: SmallNetwork, name: str) -> int:
    return next((one.i for node in network.proto().graph.node for one in node.attribute if one.name == name), 1)


def test_a_network_shrinks_in_its_shapes_weights_and_attributes_as_long_as_it_fails() -> None:
    found = shrink(depthwise(), lambda network: attribute(network, "group") > 1, quietly, Deadline(PLENTY_S))
    (x,) = found.inputs.values()
    (weight,) = found.proto().graph.initializer
    assert (x.shape, list(weight.dims), attribute(found, "group")) == ((1, 2, 1, 1), [2, 1, 1, 1], 2)


def test_an_operator_in_the_middle_is_bypassed_and_a_branch_that_nobody_reads_goes_with_it() -> None:
    net = ImageGraph("net", (1, 8, 4, 4))
    trunk = net.relu(net.input)
    both = net.concat(net.relu(net.conv(trunk, 8, 1)), net.conv(trunk, 8, 1))
    model = net.finish((net.max_pool(both, 2, stride=2), (1, 16, 2, 2))).to_bytes()
    start = SmallNetwork(
        model, {onnx.load_model_from_string(model).graph.input[0].name: np.ones((1, 8, 4, 4), np.float32)}
    )

    def kinds(network: SmallNetwork) -> list[str]:
        return [node.op_type for node in network.proto().graph.node]

    found = shrink(
        start, lambda network: "MaxPool" in kinds(network) and "Conv" in kinds(network), quietly, Deadline(PLENTY_S)
    )
    assert kinds(found) == ["Conv", "MaxPool"]


def test_every_smaller_network_is_valid_and_has_inputs_that_fit() -> None:
    found = list(steps(depthwise()))
    assert len(found) > 5
    for what, network in found:
        onnx.checker.check_model(network.proto(), full_check=True)
        shapes = {
            value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim)
            for value in network.proto().graph.input
        }
        assert {name: array.shape for name, array in network.inputs.items()} == shapes, what


def test_sizes_among_the_operands_shrink_with_the_tensors() -> None:
    shape = numpy_helper.from_array(np.array([1, 8, 9], np.int64), "shape")
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 8, 3, 3))]
    ends += [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 8, 9))]
    graph = helper.make_graph([helper.make_node("Reshape", ["x", "shape"], ["y"])], "g", ends[:1], ends[1:], [shape])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    start = SmallNetwork(model.SerializeToString(), {"x": np.zeros((1, 8, 3, 3), np.float32)})
    assert (1, 1, 3, 3) in {network.inputs["x"].shape for _, network in steps(start)}


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (
            "in Legalize on conv2d of (1, 4, 16, 16, 4): Divide by zero",
            "in Legalize on add of (1, 1): Divide by zero",
            True,
        ),
        ("in Legalize on conv2d of (1, 4): Divide by zero", "in Legalize on conv2d of (1, 4): no layout", False),
        ("cannot import Conv 'conv_3'", "cannot import Conv 'conv_77'", True),
        ("no schedule for this fused kernel (Conv, Add, Relu)", "no schedule for this fused kernel (Conv, Relu)", True),
        ("no schedule for this fused kernel (Conv, Add)", "another failure of this fused kernel (Conv, Add)", False),
    ],
)
def test_messages_that_differ_in_numbers_and_names_alone_are_the_same_failure(one: str, other: str, same: bool) -> None:
    kinds = [FailureKind.of(a_record(outcome=Outcome.COMPILE_ERROR, message=said)) for said in (one, other)]
    assert (kinds[0] == kinds[1]) is same


def test_any_wrong_answer_is_as_good_as_another_but_no_crash() -> None:
    messages: Sequence[str] = ("output 0 is off by 3", "output 1 is off by 7")
    wrong = [FailureKind.of(a_record(outcome=Outcome.WRONG_RESULT, message=said)) for said in messages]
    assert wrong[0] == wrong[1]
    assert wrong[0] != FailureKind.of(a_record(outcome=Outcome.DEVICE_CRASH, message=messages[0]))


@pytest.mark.parametrize("path", ["texture", "clml"])
def test_the_folder_has_all_that_a_report_needs(path: str, tmp_path: Path) -> None:
    network = depthwise()
    record = a_record(outcome=Outcome.WRONG_RESULT, message="output 0 is off by 3", path=path)
    answers = [np.zeros((1, 16, 7, 7), np.float32)]
    write_folder(Reduction(record, 40, network, record, answers, True, 9), tmp_path / "out", tmp_path)
    out = tmp_path / "out"
    files = {file.name for file in out.iterdir()}
    assert files >= {"model.onnx", "inputs.npz", "expected.npz", "versions.json", "report.md"}
    compile((out / "reproduce.py").read_text(), "reproduce.py", "exec")
    assert ("openclml" in (out / "reproduce.py").read_text()) is (path == "clml")
    report = (out / "report.md").read_text()
    assert "output 0 is off by 3" in report
    assert "40 operators to 2" in " ".join(report.split())
    assert json.loads((out / "versions.json").read_text())["apache-tvm"] == record.tvm


def test_the_summary_names_the_files_that_there_are(tmp_path: Path) -> None:
    """A network that does not compile has no kernels and no expected answer."""
    record = a_record(outcome=Outcome.COMPILE_ERROR, message="no schedule")
    reduction = Reduction(record, 40, depthwise(), record, (), True, 9)
    write_folder(reduction, tmp_path / "out", tmp_path)
    assert (
        "out: inputs.npz, model.onnx, report.md, reproduce.py, versions.json\n"
        in _text(reduction, tmp_path / "out", 3) + "\n"
    )


def test_a_reduction_says_at_each_trial_how_many_came_before_and_what_is_left() -> None:
    steps: list[str] = []

    class Heard(SilentProgress):
        def step(self, case_id: str, step: str) -> None:
            steps.append(f"{case_id}: {step}")

    found = reduce_case(cast(Any, FakeTrials(Heard())), quietly, Deadline(1200))
    assert [node.op_type for node in found.network.proto().graph.node] == ["MaxPool"]
    assert steps[0] == "tiny-opencl-float32-untuned: trial 1, 5 operators of 5 left, at most 20 min to go"
    assert steps[1] == "tiny-opencl-float32-untuned: trial 2, 1 operator of 5 left, at most 20 min to go"
    assert found.tried == len(steps) + 2, "the smallest is run once more, and once as shipped"
    assert not found.stopped
    assert reduce_case(cast(Any, FakeTrials(Heard())), quietly, Deadline(0)).stopped


def test_a_network_that_compiles_is_not_run_to_find_what_does_not() -> None:
    class BehindConvolution(FakeTrials):
        def _record(self, model: bytes) -> Record:
            kinds = {node.op_type for node in onnx.load_model_from_string(model).graph.node}
            return self.whole() if kinds >= {"Conv", "MaxPool"} else a_record()

    trials, wrong = BehindConvolution(outcome=Outcome.COMPILE_ERROR), BehindConvolution()
    found, other = (reduce_case(cast(Any, each), quietly, Deadline(1200)) for each in (trials, wrong))
    assert [node.op_type for node in found.network.proto().graph.node] == ["Conv", "MaxPool"]
    assert len(trials.judged) < found.tried == other.tried == len(wrong.judged)


def test_no_trial_begins_after_the_time_is_up() -> None:
    trials = FakeTrials()
    found = reduce_case(cast(Any, trials), quietly, Deadline(0))
    assert found.stopped
    assert found.network.operators == found.operators == 5
    assert len(trials.judged) == 2, "the record of the whole, and the same as shipped"
