"""The truth from outside TVM: who gives it, and what is said where nobody can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from harness.base.failures import InputRefused, NoOutsideAnswer
from harness.compile.models.spec import Original
from harness.compile.oracle import truth
from harness.compile.oracle.judge import NoAnswer, Refusal
from harness.compile.oracle.onnx_reference import OnnxReference
from harness.compile.oracle.onnx_runtime import OnnxRuntime
from harness.compile.oracle.truth import first_answer, judge_original, judges_of, values_of

pytest.importorskip("onnxruntime")
X = np.array([[1.0, -2.0, 3.0]], np.float32)


def network(*nodes: Any, opset: int = 18, kind: int = TensorProto.FLOAT, **weights: Any) -> Any:
    """From `x` to `y`, three numbers each."""
    values = [helper.make_tensor_value_info(name, kind, [1, 3]) for name in ("x", "y")]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(list(nodes), "g", values[:1], values[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def ruling(model: Any, **inputs: np.ndarray[Any, Any]) -> tuple[str, list[Any]]:
    found = first_answer(judges_of(model), inputs)
    return found.judge.name.split()[0], [output.tolist() for output in found.outputs]


def test_onnxruntime_answers() -> None:
    assert ruling(network(helper.make_node("Relu", ["x"], ["y"])), x=X) == ("onnxruntime", [[[1, 0, 3]]])


def test_onnx_reference_answers_where_onnxruntime_lacks_a_number_format_of_an_operator() -> None:
    """onnxruntime has Relu for 8 and 32 bits, and not for 16."""
    model = network(helper.make_node("Relu", ["x"], ["y"]), kind=TensorProto.INT16)
    assert ruling(model, x=X.astype(np.int16)) == ("onnx.reference", [[[1, 0, 3]]])


@pytest.mark.parametrize("shape", [(1, 2, 5), (1, 2, 5, 4), (1, 2, 5, 4, 3)])
def test_the_reference_pools_signals_and_volumes_as_it_does_images(shape: tuple[int, ...]) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("x", "y"))
    graph = helper.make_graph([helper.make_node("GlobalMaxPool", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    volume = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (answer,), (same,) = OnnxReference(model).ask({"x": volume}), OnnxRuntime(model).ask({"x": volume})
    np.testing.assert_array_equal(answer, same)


def test_what_depends_on_no_input_keeps_onnxruntime_from_no_network() -> None:
    """It has no Cos of doubles, and ONNX's reference mistakes a norm of magnitudes."""
    nodes = [
        helper.make_node("Cos", ["angles"], ["wide"]),
        helper.make_node("Cast", ["wide"], ["places"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "places"], ["moved"]),
        helper.make_node("LpNormalization", ["moved"], ["y"], p=1),
    ]
    name, (answer,) = ruling(network(*nodes, angles=np.array([[0.0, np.pi / 2, np.pi]])), x=X)
    assert name == "onnxruntime"
    np.testing.assert_allclose(answer, [[1 / 3, -1 / 3, 1 / 3]], atol=1e-6)


@pytest.mark.parametrize(("order", "norm"), [(1, 6.0), (2, 14**0.5)])
def test_onnxruntime_answers_for_a_norm_of_a_set_in_which_it_lacks_one(order: int, norm: float) -> None:
    """Its network's pools were given to ONNX's reference with it, which takes dilated ones for others."""
    name, (answer,) = ruling(network(helper.make_node("LpNormalization", ["x"], ["y"], p=order), opset=22), x=X)
    assert name == "onnxruntime"
    np.testing.assert_allclose(answer, X / norm, rtol=1e-6)


@pytest.mark.parametrize(("kind", "operands"), [("Relu", ["x"]), ("SwiGLU", ["x", "x"])])
def test_onnxruntime_answers_for_an_operator_set_that_is_newer(kind: str, operands: list[str]) -> None:
    """It refused the network, and ONNX's reference judged all of its operators."""
    model = network(helper.make_node(kind, operands, ["y"]), opset=28)
    before = model.SerializeToString()
    name, (answer,) = ruling(model, x=X)
    assert name == "onnxruntime"
    np.testing.assert_allclose(answer, OnnxReference(model).ask({"x": X})[0].tolist(), rtol=1e-6)
    assert model.SerializeToString() == before


def test_a_format_that_is_newer_than_onnxruntime_is_read_all_the_same() -> None:
    model = network(helper.make_node("Relu", ["x"], ["y"]))
    model.ir_version = 14
    assert OnnxRuntime(model).ask({"x": X})[0].tolist() == [[1, 0, 3]]
    assert model.ir_version == 14


def test_what_nobody_knows_has_no_answer_and_each_says_why() -> None:
    model = network(helper.make_node("Mystery", ["x"], ["y"], domain="mine"))
    model.opset_import.append(helper.make_opsetid("mine", 1))
    with pytest.raises(NoOutsideAnswer, match=r"onnxruntime: .*Mystery.*; onnx\.reference: .*Mystery"):
        first_answer(judges_of(model), {"x": X})


@pytest.mark.parametrize(
    ("kind", "opset", "attributes"),
    [
        ("BatchNormalization", 13, {}),
        ("Softmax", 12, {"axis": 1}),
        ("LRN", 22, {"size": 3}),
        ("LpNormalization", 22, {"p": 1}),
        ("RoiAlign", 10, {}),
        ("Loop", 22, {}),
        ("GRU", 28, {"hidden_size": 3, "activations": ["Sigmoid", "Relu"]}),
        ("LSTM", 28, {"hidden_size": 3, "clip": 0.5}),
        ("AveragePool", 22, {"auto_pad": "VALID", "kernel_shape": [2], "dilations": [2]}),
        ("LpPool", 22, {"ceil_mode": 1, "kernel_shape": [2], "strides": [2]}),
        ("MaxPool", 22, {"pads": [0, 1], "kernel_shape": [2]}),
        ("ConvTranspose", 22, {"group": 2}),
        ("ConvTranspose", 22, {"auto_pad": "SAME_UPPER"}),
        ("GridSample", 22, {"mode": "cubic", "padding_mode": "border"}),
        ("Unique", 22, {"sorted": 0}),
    ],
)
def test_what_the_reference_mistakes_is_not_asked_of_it(kind: str, opset: int, attributes: dict[str, Any]) -> None:
    """A sum of three numbers with signs, of onnx 1.23, was the norm of an LpNormalization that onnxruntime lacks."""
    node = helper.make_node(kind, ["x", "s"], ["y"], **attributes)
    with pytest.raises(NoAnswer, match=f"mistakes {kind} of operator set {opset}"):
        OnnxReference(network(node, opset=opset))


def gather() -> Any:
    index = helper.make_tensor_value_info("ids", TensorProto.INT64, [2])
    answer = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])
    table = numpy_helper.from_array(np.zeros((50, 3), np.float32), "table")
    node = helper.make_node("Gather", ["table", "ids"], ["y"], name="lookup")
    return helper.make_model(
        helper.make_graph([node], "g", [index], [answer], [table]),
        opset_imports=[helper.make_opsetid("", 18)],
        ir_version=9,
    )


def test_inputs_that_the_network_cannot_take_are_refused_with_the_operator_and_its_range() -> None:
    with pytest.raises(InputRefused) as caught:
        first_answer(judges_of(gather()), {"ids": np.array([3, 99_999])})
    assert caught.value.message.startswith("onnxruntime: Gather 'lookup': indices element out of data bounds")
    assert "[-50,49]" in caught.value.message
    assert "--input" in caught.value.hint


def test_a_shape_that_the_network_cannot_take_is_refused_without_onnxruntimes_own_condition() -> None:
    rows = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3])
    fours = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["m", 4])
    node = helper.make_node("Reshape", ["x", "shape"], ["y"], name="fold")
    graph = helper.make_graph([node], "g", [rows], [fours], [numpy_helper.from_array(np.array([-1, 4]), "shape")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    with pytest.raises(InputRefused) as caught:
        first_answer(judges_of(model), {"x": np.zeros((3, 3), np.float32)})
    said = "onnxruntime: Reshape 'fold': The input tensor cannot be reshaped to the requested shape. Input shape:{3,3}"
    assert caught.value.message == f"{said}, requested shape:{{-1,4}}"
    assert caught.value.hint.startswith("give others than x [3, 3], with `--shape NAME=SIZES`")


@dataclass(frozen=True)
class Fake:
    name: str
    raises: Exception | None = None

    def ask(self, inputs: Any) -> list[Any]:
        if self.raises:
            raise self.raises
        return [X]


LACK, NO = NoAnswer("lacks it"), Refusal("refuses it")


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ((None,), "first"),
        ((LACK, None), "second"),
        ((NO, None), "second"),
        ((LACK, LACK), NoOutsideAnswer),
        ((NO, LACK), NoOutsideAnswer),  # which may be a lack of the first one, too
        ((NO, NO), InputRefused),
        ((LACK, NO, NO), InputRefused),
    ],
)
def test_the_first_that_can_answers_and_two_have_to_refuse(
    answers: tuple[Exception | None, ...], expected: str | type[Exception]
) -> None:
    names = ("first", "second", "third")
    judges: list[Callable[[], Fake]] = [lambda n=n, a=a: Fake(n, a) for n, a in zip(names, answers, strict=False)]  # type: ignore[misc]
    if isinstance(expected, str):
        assert first_answer(judges, {}).judge.name == expected
    else:
        with pytest.raises(expected):
            first_answer(judges, {})


def test_the_original_is_judged_with_what_preparation_would_take_out(tmp_path: Path) -> None:
    model = network(helper.make_node("Identity", ["x"], ["same"]), helper.make_node("Neg", ["same"], ["y"]))
    (answer,) = judge_original(Original(tmp_path / "a.onnx"), model, {"x": X}).outputs
    assert answer.tolist() == [[-1, 2, -3]]


def test_the_result_of_every_operator_comes_from_one_run() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["positive"]), helper.make_node("ArgMax", ["positive"], ["best"], axis=1)]
    model = network(*nodes, helper.make_node("Neg", ["positive"], ["y"]))
    values = values_of(model, {"x": X})
    assert {name: array.tolist() for name, array in values.items()} == {
        "positive": [[1, 0, 3]],
        "best": [[2]],
        "y": [[-1, 0, -3]],
    }
    assert [value.name for value in model.graph.output] == ["y"]


def test_a_file_in_the_format_of_a_tool_is_computed_by_the_judge_of_that_format(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[tuple[Path, bool]] = []

    class Doubling:
        name = "doubling"

        def __init__(self, file: Path, *, trust: bool) -> None:
            opened.append((file, trust))

        def ask(self, inputs: Any) -> list[Any]:
            return [array * 2 for array in inputs.values()]

    monkeypatch.setattr(truth, "load", {"place:Doubling": Doubling}.get)
    original = Original(Path("net.onnx"), Path("net.pt2"), "place:Doubling", trust=True)
    answer = judge_original(original, network(helper.make_node("Relu", ["x"], ["y"])), {"x": X})
    assert (answer.judge.name, answer.outputs[0].tolist()) == ("doubling", (X * 2).tolist())
    assert opened == [(Path("net.pt2"), True)]
