"""The oracle's answers: to given inputs, to others, and none where nothing can be compared with them."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compile_requests import request_for
from onnx import TensorProto, helper, numpy_helper

from harness.base.failures import OracleNotFinite
from harness.compile.artifacts.artifact import INPUTS, JUDGE, LEEWAY, OTHER_OUTPUTS, OUTPUTS, Answers, load_arrays
from harness.compile.artifacts.oracle import Question, ask_llvm, find_truth
from harness.compile.artifacts.values import named_origin
from harness.compile.compiler.releases import tvm_version
from harness.compile.models.spec import Original

MASK = np.array([0.0, -np.inf, 0.0, 0.0], np.float32)


def network(*nodes: Any, **weights: Any) -> Any:
    """From `x` to `y`, four numbers each."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("x", "y")]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = helper.make_graph(list(nodes), "g", values[:1], values[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


MASKED = network(
    helper.make_node("Add", ["x", "mask"], ["masked"], name="mask"),
    helper.make_node("Softmax", ["masked"], ["shares"], name="attention"),
    helper.make_node("Sub", ["shares", "one"], ["less"], name="minus one"),
    helper.make_node("Sqrt", ["less"], ["root"], name="/layer.0/Sqrt"),
    helper.make_node("Identity", ["root"], ["same"]),
    helper.make_node("Add", ["same", "one"], ["y"]),
    mask=MASK,
    one=np.array([1.5], np.float32),
)
"""An infinity on purpose, which the softmax takes away, and then the root of a negative number."""


def asked(model: Any, folder: Path, given: str | None = None) -> dict[str, Any]:
    file = folder / "model.onnx"
    file.write_bytes(model.SerializeToString())
    return find_truth(Original(file), Question(file, 1, given or {}, ""), folder)


def test_what_onnxruntime_refuses_is_measured_as_it_is_prepared(tmp_path: Path) -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("live", "dead")]
    dead = [helper.make_node("Resize", ["root", "", "", "sizes"], ["dead"], mode="linear")]  # of another rank
    branches = {
        "then_branch": helper.make_graph([helper.make_node("Identity", ["root"], ["live"])], "live", [], ends[:1]),
        "else_branch": helper.make_graph(dead, "dead", [], ends[1:]),
    }
    root = helper.make_node("Sigmoid", ["x"], ["root"])
    choice = helper.make_node("If", ["yes"], ["y"], **branches)
    refused, prepared = tmp_path / "refused.onnx", tmp_path / "prepared.onnx"
    model = network(root, choice, yes=np.array(True), sizes=np.array([1, 8, 8]))
    refused.write_bytes(model.SerializeToString())
    prepared.write_bytes(network(helper.make_node("Sigmoid", ["x"], ["y"])).SerializeToString())
    find_truth(Original(refused), Question(prepared, 1, {}, ""), tmp_path)
    assert json.loads((tmp_path / JUDGE).read_text("utf-8")).startswith("onnx.reference")
    assert np.load(tmp_path / LEEWAY)["0 rounding float32"] > 0


def test_the_first_operator_on_the_way_to_the_output_is_named(tmp_path: Path) -> None:
    with pytest.raises(OracleNotFinite) as caught:
        asked(MASKED, tmp_path)
    assert caught.value.message == (
        "output 0 of the model is not finite on the CPU either (4 of 4 elements are NaN); it begins with "
        "Sqrt '/layer.0/Sqrt' (operator 4 of 6, result 'root'), whose inputs are finite"
    )
    assert "--input" in caught.value.hint
    assert not (tmp_path / OUTPUTS).exists()


def test_given_inputs_are_what_is_answered(tmp_path: Path) -> None:
    model = network(helper.make_node("Sqrt", ["x"], ["y"]))
    given = np.array([[1, 4, 9, 16]], np.float32)
    np.savez(tmp_path / "x.npz", x=given)
    asked(model, tmp_path, str(tmp_path / "x.npz"))
    for name, array in ((INPUTS, given), (OUTPUTS, np.sqrt(given))):
        (found,) = load_arrays(tmp_path / name)
        np.testing.assert_allclose(found.astype(np.float64), array, rtol=1e-6)
    (other,) = load_arrays(tmp_path / OTHER_OUTPUTS)
    assert np.isnan(other).any(), "of random numbers some are negative, and that is no fault of the model"


def test_inputs_that_the_model_cannot_take_are_to_blame(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.full((1, 4), 1e38, np.float32))
    model = network(helper.make_node("Mul", ["x", "x"], ["y"], name="square"))
    with pytest.raises(OracleNotFinite, match=r"4 of 4 elements are infinite.* Mul 'square'") as caught:
        asked(model, tmp_path, str(tmp_path / "x.npz"))
    assert str(tmp_path / "x.npz") in caught.value.hint


def test_a_weight_that_is_not_finite_is_named() -> None:
    model = network(helper.make_node("Mul", ["x", "w"], ["y"]), w=np.array([np.nan], np.float32))
    told = named_origin(model, {"y": np.array([np.nan], np.float32)}, "y")
    assert told == "Mul (operator 1 of 1, result 'y'), whose weight 'w' is not finite"


def test_where_it_cannot_be_told_nothing_is_said() -> None:
    assert named_origin(MASKED, {"y": np.array([1.0], np.float32)}, "y") == ""
    assert named_origin(MASKED, {}, "x") == ""


def test_llvm_answers_the_same_question_and_says_who_it_is(tmp_path: Path) -> None:
    model = network(helper.make_node("Mul", ["x", "x"], ["y"]))
    (tmp_path / "llvm").mkdir()
    asked(model, tmp_path)
    file = tmp_path / "model.onnx"
    ask_llvm(request_for(file, "cpu"), Question(file, 1, {}, ""), tmp_path / "llvm")
    for name in (INPUTS, OUTPUTS, OTHER_OUTPUTS):
        (truth,), (llvm,) = load_arrays(tmp_path / name), load_arrays(tmp_path / "llvm" / name)
        np.testing.assert_allclose(llvm.astype(np.float64), truth.astype(np.float64), rtol=1e-6)
    judges = [json.loads((folder / JUDGE).read_text("utf-8")) for folder in (tmp_path, tmp_path / "llvm")]
    assert judges == [f"onnxruntime {version('onnxruntime')}", f"TVM {tvm_version()} on LLVM"]


def test_other_divisors_are_among_those_of_the_file(tmp_path: Path) -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.INT32, [1, 64]) for name in ("a", "b", "y")]
    graph = helper.make_graph([helper.make_node("Div", ["a", "b"], ["y"])], "g", ends[:2], ends[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    a = np.arange(64, dtype=np.int32)[None]
    b = a % 7 + 1
    np.savez(tmp_path / "given.npz", a=a, b=b)
    asked(model, tmp_path, str(tmp_path / "given.npz"))
    (right,), (other,) = load_arrays(tmp_path / OUTPUTS), load_arrays(tmp_path / OTHER_OUTPUTS)
    np.testing.assert_array_equal(right, a // b)
    assert right.tolist() != other.tolist()


def test_which_branch_of_an_if_was_judged_is_kept_with_the_answers(tmp_path: Path) -> None:
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in ("t", "e")]
    then, other = (
        helper.make_graph([helper.make_node(kind, ["x"], [end.name])], kind, [], [end])
        for kind, end in zip(("Neg", "Abs"), ends, strict=True)
    )
    model = network(
        helper.make_node("ReduceMin", ["x"], ["low"], keepdims=0),
        helper.make_node("Less", ["low", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], name="sign", then_branch=then, else_branch=other),
        zero=np.float32(0),
    )
    for number, word in ((-1, "then"), (1, "else")):
        np.savez(tmp_path / "x.npz", x=np.full((1, 4), number, np.float32))
        folder = tmp_path / word
        folder.mkdir()
        asked(model, folder, str(tmp_path / "x.npz"))
        assert Answers(folder, reused=False).branches == (f"{word} of sign",)
    assert Answers(tmp_path, reused=False).branches == ()


def test_a_network_in_bfloat16_is_judged_in_float32(tmp_path: Path) -> None:
    """ONNX's reference judged it in bfloat16, from which what TVM computes in float32 differs."""
    nodes = [
        helper.make_node("Cast", ["x"], ["small"], to=TensorProto.BFLOAT16),
        helper.make_node("Mul", ["small", "small"], ["square"]),
        helper.make_node("Cast", ["square"], ["y"], to=TensorProto.FLOAT),
    ]
    asked(network(*nodes), tmp_path)
    ((x,), (y,)) = (load_arrays(tmp_path / name) for name in (INPUTS, OUTPUTS))
    np.testing.assert_allclose(y.astype(np.float64), np.square(x.astype(np.float64)), rtol=1e-6)
    assert json.loads((tmp_path / JUDGE).read_text("utf-8")).startswith("onnxruntime")
