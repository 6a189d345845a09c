"""What a network is made of, counted from its graph, and what each path can take of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from harness.base.outcome import ExitCode
from harness.cli import app
from harness.compile.compiler.releases import onnx_operators
from harness.tools.ops.cells import CellVerdict
from harness.tools.ops.operator_table import OperatorTable

pytestmark = pytest.mark.rest

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


def test_the_operators_that_are_read_from_the_source_are_those_that_the_importer_has() -> None:
    from tvm.relax.frontend.onnx import onnx_frontend

    assert onnx_operators() == {*onnx_frontend._get_convert_map(), "If", "Constant"}


def test_inspect_shows_what_the_operator_table_of_the_release_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = {"opencl": [CRASH], "texture": [NOT_BUILT, CRASH, NOT_BUILT], "clml": [RIGHT]}
    one = {"tvm": "1.2", "dtype": "float32", "operator": "Relu", "as_shipped": False, "message": ""}
    plain = [{**one, "path": path, "verdict": verdict.value} for path, of in cells.items() for verdict in of]
    plain += [{**one, "operator": "Conv", "path": "clml", "verdict": verdict.value} for verdict in (RIGHT, WRONG)]
    OperatorTable.of("1.2", plain).write(tmp_path)
    table = OperatorTable.find("1.2", tmp_path)
    monkeypatch.setattr(OperatorTable, "find", lambda _tvm: table)
    nodes = (helper.make_node("Conv", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"]))
    model = network(*nodes, w=ones(4, 4, 1, 1))
    model.graph.output[0].type.tensor_type.shape.dim.add(dim_value=1)
    onnx.save(model, tmp_path / "net.onnx")
    shown = CliRunner().invoke(app, ["inspect", str(tmp_path / "net.onnx")]).stdout
    assert re.search(r"Relu +1 +crashes +does not build +clml\n", shown)
    assert re.search(r"Conv +1 .* kernel +image +clml\n", shown)
    assert "Conv on clml: of 2 node tests 1 is wrong\n" in shown
    assert "Relu on texture: of 3 node tests 2 do not build, 1 crashes\n" in shown


def inspected(tmp_path: Path, model: Any, *words: str) -> tuple[int, str]:
    """Exit code and output of `inspect`."""
    onnx.save(model, tmp_path / "net.onnx")
    done = CliRunner().invoke(app, ["inspect", str(tmp_path / "net.onnx"), *words])
    return done.exit_code, done.stdout


def test_an_operator_that_fails_in_all_of_its_node_tests_runs_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = {"tvm": "1.2", "dtype": "float32", "operator": "Relu", "as_shipped": False, "message": ""}
    table = OperatorTable.of(
        "1.2", [{**one, "path": p, "verdict": NOT_BUILT.value} for p in ("opencl", "texture", "clml")]
    )
    monkeypatch.setattr(OperatorTable, "find", lambda _tvm: table)
    model = network(helper.make_node("Relu", ["x"], ["y"]))
    model.graph.output[0].type.tensor_type.shape.dim.add(dim_param="batch")
    assert inspected(tmp_path, model)[0] == ExitCode.WRONG_OR_BROKEN


def test_a_fixed_input_is_counted_with_the_branch_that_it_chooses(tmp_path: Path) -> None:
    def branch(name: str, columns: int) -> Any:
        return helper.make_graph(
            [helper.make_node("MatMul", ["x", f"w{name}"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, columns])],
            [numpy_helper.from_array(ones(8, columns), f"w{name}")],
        )

    nodes = [
        helper.make_node("Cast", ["rate"], ["flag"], to=TensorProto.BOOL),
        helper.make_node("If", ["flag"], ["y"], then_branch=branch("t", 4), else_branch=branch("e", 16)),
    ]
    model = network(*nodes, x=(2, 8))
    model.graph.input.append(helper.make_tensor_value_info("rate", TensorProto.INT64, []))
    for extent in ("rows", "columns"):
        model.graph.output[0].type.tensor_type.shape.dim.add(dim_param=extent)
    both = json.loads(inspected(tmp_path, model, "--json")[1])
    assert (both["parameters"], both["macs"]) == (8 * 4 + 8 * 16, 2 * 8 * 4 + 2 * 8 * 16)
    assert both["changes"][0].startswith("computed both branches of 1 If, of which one branch is judged: y")
    single = json.loads(inspected(tmp_path, model, "--json", "--fix", "rate=0")[1])
    assert (single["parameters"], single["macs"]) == (8 * 16, 2 * 8 * 16)


def test_inspect_loads_no_tvm() -> None:
    script = (
        "import sys\nfrom typer.testing import CliRunner\nfrom harness.cli import app\n"
        "assert 'multiply' in CliRunner().invoke(app, ['inspect', 'tiny']).stdout\nassert 'tvm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=120)


def test_a_large_network_is_read_in_twice_its_size(tmp_path: Path) -> None:
    """Memory is what the reader takes beyond the interpreter, measured in a process of its own."""
    size = 100_000_000
    model = network(helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Identity", ["a"], ["y"]))
    model.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 5000)))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 5000)))
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((5000, 5000), np.float32), "w"))
    file = tmp_path / "large.onnx"
    onnx.save(model, file)
    script = (
        "import resource, sys\nfrom pathlib import Path\nimport onnx.reference\n"
        "from harness.compile.models.sources import OnnxFile\n"
        "peak = lambda whose: resource.getrusage(whose).ru_maxrss * 1024\nbefore = peak(resource.RUSAGE_SELF)\n"
        "OnnxFile('large', Path(sys.argv[1])).onnx_file(Path(sys.argv[2]))\n"
        "print(peak(resource.RUSAGE_CHILDREN) - before)"
    )
    words = [sys.executable, "-c", script, str(file), str(tmp_path)]
    done = subprocess.run(words, check=True, capture_output=True, timeout=120)
    assert int(done.stdout) < 2.1 * size
