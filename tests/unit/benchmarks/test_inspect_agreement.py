"""What `inspect` says of a network, as yes and no."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from benchmarks.inspect_agreement import answers
from harness.tools.ops.operator_table import OperatorTable

PATHS = ("opencl", "texture", "clml")
RESULTS = {"Relu": ["right"], "Sin": ["right", "wrong"], "Cos": ["crashes"]}
TABLE = OperatorTable.of(
    "1.2",
    [
        {"tvm": "1.2", "operator": name, "dtype": "float32", "path": path, "verdict": verdict, "message": ""}
        | {"as_shipped": False}
        for name, verdicts in RESULTS.items()
        for verdict in verdicts
        for path in PATHS
    ],
)


@pytest.mark.parametrize(
    ("operator", "said"), [("Relu", "yes"), ("Sin", "noted"), ("Cos", "no"), ("Det", "no"), ("NonZero", "no")]
)
def test_a_network_of_one_operator(operator: str, said: str, tmp_path: Path) -> None:
    assert answers(saved(operator, TensorProto.FLOAT, tmp_path), TABLE) == dict.fromkeys(PATHS, said)


def test_a_network_in_float64_says_nothing(tmp_path: Path) -> None:
    assert answers(saved("Relu", TensorProto.DOUBLE, tmp_path), TABLE) == {}


def saved(operator: str, kind: Any, folder: Path) -> Path:
    ends = [helper.make_tensor_value_info(name, kind, [2, 3]) for name in ("x", "y")]
    if operator == "NonZero":
        ends[1] = helper.make_tensor_value_info("y", TensorProto.INT64, [2, "found"])
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "small", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "net.onnx")
    return folder / "net.onnx"
