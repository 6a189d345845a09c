"""What a network is made of, counted from its graph, and what each path can take of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from harness.base.outcome import ExitCode
from harness.cli import app
from harness.compile.compiler.releases import RELEASES, onnx_operators
from harness.tools.ops.cells import CellVerdict
from harness.tools.ops.operator_table import OperatorTable, wrong_cases
from harness.tools.ops.summary import destination_of, summarize

RIGHT, WRONG, NOT_BUILT, CRASH = CellVerdict.RIGHT, CellVerdict.WRONG, CellVerdict.NOT_BUILT, CellVerdict.CRASH


def network(*nodes: Any, x: tuple[int | str, ...] = (1, 4, 8, 8), opset: int = 13, **weights: Any) -> Any:
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "net", [value("x", TensorProto.FLOAT, x)], [value("y", TensorProto.FLOAT, None)], tensors
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("acme", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


@pytest.mark.parametrize(
    ("node", "x", "weight", "macs", "parameters"),
    [
        (helper.make_node("Conv", ["x", "w"], ["y"], group=2), (1, 4, 8, 8), ones(6, 2, 3, 3), 6 * 36 * 18, 108),
        (helper.make_node("ConvTranspose", ["x", "w"], ["y"]), (1, 4, 8, 8), ones(4, 3, 2, 2), 256 * 12, 48),
        (helper.make_node("Gemm", ["x", "w"], ["y"], transB=1), (2, 5), ones(7, 5), 2 * 7 * 5, 35),
        (helper.make_node("Gemm", ["x", "w"], ["y"], transA=1), (5, 2), ones(5, 7), 2 * 7 * 5, 35),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), (3, 2, 5), ones(5, 7), 3 * 2 * 7 * 5, 35),
        (helper.make_node("Add", ["x", "w"], ["y"]), (2, 5), ones(5), 0, 5),
        (helper.make_node("Mul", ["x", "w"], ["y"]), (2, 5), np.float32(3), 0, 0),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), ("rows", 5), ones(5, 7), None, 35),
    ],
)
def test_products_and_parameters_of_each_operator(
    node: Any, x: tuple[int | str, ...], weight: Any, macs: int | None, parameters: int
) -> None:
    summary = summarize(network(node, x=x, w=weight))
    assert (summary.macs, summary.parameters) == (macs, parameters)
    assert summary.weight_bytes == weight.nbytes


def test_a_weight_that_two_operators_read_counts_once_and_statistics_do_not() -> None:
    names = ["gamma", "beta", "mean", "variance"]
    nodes = [
        helper.make_node("BatchNormalization", ["x", *names], ["a"]),
        helper.make_node("BatchNormalization", ["a", *names], ["y"]),
    ]
    assert summarize(network(*nodes, **dict.fromkeys(names, ones(4)))).parameters == 8


@pytest.mark.parametrize(
    ("node", "x", "weight", "expected"),
    [
        (helper.make_node("Conv", ["x", "w"], ["y"]), (1, 4, 8, 8), ones(4, 4, 1, 1), ("kernel", "image", "clml")),
        (
            helper.make_node("Conv", ["x", "w"], ["y"], group=4),
            (1, 4, 8, 8),
            ones(4, 1, 1, 1),
            ("kernel", "kernel", "kernel"),
        ),
        (helper.make_node("Add", ["x", "x"], ["y"]), (1, 4), ones(1), ("kernel", "kernel", "clml")),
        (helper.make_node("Add", ["x", "w"], ["y"]), (1, 4), ones(1), ("kernel", "kernel", "kernel")),
        (helper.make_node("Add", ["x", "x"], ["y"]), (2, 4), ones(1), ("kernel", "kernel", "kernel")),
        (helper.make_node("MatMul", ["x", "w"], ["y"]), (1, 4), ones(4, 4), ("kernel", "kernel", "kernel")),
        (helper.make_node("Frob", ["x"], ["y"], domain="acme"), (1, 4), ones(1), ("no", "no", "no")),
    ],
)
def test_which_path_takes_what(node: Any, x: tuple[int, ...], weight: Any, expected: tuple[str, ...]) -> None:
    (found,) = summarize(network(node, x=x, w=weight)).nodes
    assert tuple(destination_of(path, found, onnx_operators()) for path in ("opencl", "texture", "clml")) == expected


def test_inspect_shows_what_it_counted_and_names_what_tvm_lacks(tmp_path: Path) -> None:
    model = network(
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Conv", ["a", "w"], ["b"], name="first"),
        helper.make_node("Frob", ["b"], ["c"], name="odd", domain="acme"),
        helper.make_node("Relu", ["c"], ["y"]),
        x=("batch", 4, 8, 8),
        w=ones(8, 4, 1, 1),
    )
    model.graph.output[0].type.tensor_type.shape.dim.add(dim_param="batch")
    file = tmp_path / "net.onnx"
    file.write_bytes(model.SerializeToString())
    words = ["inspect", str(file), "--shape", "batch=2"]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == ExitCode.WRONG_OR_BROKEN
    told = json.loads(done.stdout)
    assert (told["macs"], told["parameters"], told["unknown"]) == (2 * 8 * 64 * 4, 32, {"acme.Frob": ["odd"]})
    assert told["inputs"] == [{"name": "x", "shape": [2, 4, 8, 8], "dtype": "float32"}]
    assert told["changes"] == ["fixed x [2, 4, 8, 8]", "removed 1 Identity"]
    shown = CliRunner().invoke(app, words).stdout
    assert "TVM's ONNX importer does not know acme.Frob: odd" in shown
    open_ = json.loads(CliRunner().invoke(app, ["inspect", str(file), "--json"]).stdout)
    assert (open_["inputs"][0]["shape"], open_["macs"]) == (["batch", 4, 8, 8], None)
    shown = CliRunner().invoke(app, ["inspect", str(file)]).stdout
    assert "unknown multiply-accumulates (give --shape batch=1)" in shown
    assert re.search(r"Conv +1 +unknown +32 +kernel +unknown +unknown\n", shown)


def test_inspect_says_how_to_fix_a_dimension_without_a_name(tmp_path: Path) -> None:
    model = network(helper.make_node("Conv", ["x", "w"], ["y"]), x=(1, 4, 8, 8), w=ones(8, 4, 1, 1))
    for dim in model.graph.input[0].type.tensor_type.shape.dim[2:]:
        dim.Clear()
    onnx.save(model, tmp_path / "net.onnx")
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "net.onnx")]).stdout
    assert "unknown multiply-accumulates (give --shape x=1x4x1x1)" in shown


def test_inspect_names_a_contradiction_and_no_length_to_fix(tmp_path: Path) -> None:
    far = helper.make_node("Unsqueeze", ["x"], ["far"], "far", axes=[5])
    gru = helper.make_node("GRU", ["far", "w", "r"], ["y"], hidden_size=2)
    model = network(far, gru, x=(1, 96), opset=11, w=ones(1, 6, 4), r=ones(1, 6, 2))
    onnx.save(model, tmp_path / "net.onnx")
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "net.onnx")]).stdout
    assert "the network contradicts itself, so export it another way: (op_type:Unsqueeze, node name: far)" in shown
    assert "--shape" not in shown


def test_a_refusal_that_depends_on_attributes_is_no_fact_about_the_operator() -> None:
    one = {"tvm": "1.2", "dtype": "float32", "operator": "Resize", "as_shipped": False, "path": "opencl"}
    messages = [
        "TVM's ONNX importer misreads Resize 'y': it leaves out antialias",
        "TVM failed to import the model, in from_onnx on Resize 'y': ValueError: ndim 0",
        "TVM failed to lower the model, in LegalizeOps on relax.image.resize2d: Divide by zero",
        "TVM failed to lower the model, in ApplyDefaultSchedule on resize2d: ScheduleError",
    ]
    cells = [{**one, "verdict": NOT_BUILT.value, "message": message} for message in messages]
    table = OperatorTable.of("1.2", [*cells, {**one, "verdict": RIGHT.value, "message": ""}])
    assert table.cases("Resize", ["float32"], "opencl") == {NOT_BUILT: 1, RIGHT: 1}


def test_the_table_of_the_release_that_is_supported_is_there_and_knows_the_importers_operators() -> None:
    table = OperatorTable.find(list(RELEASES)[-1])
    assert table
    assert {"Conv", "NonZero", "Resize"} < {*table.counts}
    assert wrong_cases(table.cases("BitShift", ["int32"], "opencl"))
    assert table.cases("Relu", ["float32"], "opencl") == {RIGHT: 1}


@pytest.mark.parametrize("kind", ["NonZero", "Unique"])
def test_what_tvm_computes_in_python_runs_on_no_path(tmp_path: Path, kind: str) -> None:
    model = network(helper.make_node("Relu", ["x"], ["a"]), helper.make_node(kind, ["a"], ["y"], name="odd"))
    model.graph.output[0].type.tensor_type.shape.dim.add(dim_param="results")
    onnx.save(model, tmp_path / "net.onnx")
    done = CliRunner().invoke(app, ["inspect", str(tmp_path / "net.onnx")])
    assert done.exit_code == ExitCode.WRONG_OR_BROKEN
    assert re.search(rf"{kind} +1 +no +no +no\n", done.stdout)
    assert f"TVM computes {kind} in Python, which no device has: odd" in done.stdout


def test_inspect_says_that_no_phone_computes_in_float64(tmp_path: Path) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["z"], to=TensorProto.DOUBLE), helper.make_node("Exp", ["z"], ["e"])]
    file = tmp_path / "net.onnx"
    model = network(*nodes, helper.make_node("Cast", ["e"], ["y"], to=TensorProto.FLOAT), x=(2, 3))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, (2, 3)))
    onnx.save(model, file)
    shown = CliRunner().invoke(app, ["inspect", str(file)])
    assert shown.exit_code == ExitCode.WRONG_OR_BROKEN
    assert "no Adreno computes in float64: Cast (2), Exp (1); such a case is `unsupported`" in shown.stdout
    told = json.loads(CliRunner().invoke(app, ["inspect", str(file), "--json"]).stdout)
    assert told["float64"] == {"Cast": 2, "Exp": 1}
    single = json.loads(CliRunner().invoke(app, ["inspect", "tiny", "--json"]).stdout)
    assert single["float64"] == {}


@pytest.mark.parametrize(("kind", "refused"), [("Transpose", True), ("Abs", False)])
def test_inspect_says_that_clml_takes_no_branches_of_unlike_shapes(tmp_path: Path, kind: str, refused: bool) -> None:
    value = helper.make_tensor_value_info("y", TensorProto.FLOAT, ("rows", "columns"))
    graphs = {
        f"{word}_branch": helper.make_graph([helper.make_node(kind, ["x"], ["y"])], word, [], [value])
        for word, kind in (("then", "Relu"), ("else", kind))
    }
    choose = helper.make_node("If", ["choice"], ["y"], name="choose", **graphs)
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, (2, 3)),
        helper.make_tensor_value_info("choice", TensorProto.BOOL, ()),
    ]
    model = helper.make_model(
        helper.make_graph([choose], "net", inputs, [value]), opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )
    onnx.save(model, tmp_path / "net.onnx")
    done = CliRunner().invoke(app, ["inspect", str(tmp_path / "net.onnx")])
    assert done.exit_code == ExitCode.GOOD, "opencl and texture take it"
    message = "refused on clml: path clml takes no network with a branch that an input decides: If (y)"
    assert (message in done.stdout) == refused


def inspected(tmp_path: Path, model: Any, *words: str) -> tuple[int, str]:
    """Exit code and output of `inspect`."""
    onnx.save(model, tmp_path / "net.onnx")
    done = CliRunner().invoke(app, ["inspect", str(tmp_path / "net.onnx"), *words])
    return done.exit_code, done.stdout


def test_inspect_refuses_what_a_build_would_refuse_as_misread(tmp_path: Path) -> None:
    node = helper.make_node("RoiAlign", ["x", "regions", "images"], ["y"], mode="max", sampling_ratio=1)
    model = network(node, regions=np.array([[0, 0, 4, 4]], np.float32), images=np.array([0]))
    model.graph.output[0].type.tensor_type.shape.dim.add(dim_param="batch")
    code, text = inspected(tmp_path, model)
    assert code == ExitCode.WRONG_OR_BROKEN
    assert "refused on opencl, texture, clml: TVM's ONNX importer misreads RoiAlign 'y'" in text
    assert [*json.loads(inspected(tmp_path, model, "--json")[1])["refused"].values()] == [["opencl", "texture", "clml"]]


def test_quantised_operators_are_counted() -> None:
    weight = np.ones((6, 4, 3, 3), np.int8)
    node = helper.make_node("QLinearConv", ["x", "s", "z", "w", "s", "wz", "s", "z"], ["y"])
    model = network(node, s=np.float32(1), z=np.uint8(0), w=weight, wz=np.int8(0))
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.elem_type = TensorProto.UINT8
    summary = summarize(model)
    assert (summary.macs, summary.parameters) == (6 * 36 * 36, weight.size)
