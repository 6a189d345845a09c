"""What is judged and what cannot be: networks that once passed, or were blamed on others, through OpenCL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command import start
from onnx import TensorProto, helper, numpy_helper
from waiting import LONG_S

from harness.base.outcome import ExitCode, Outcome, Owner
from harness.measure.facts import WitnessReport
from harness.measure.records.record import Record, RecordFile
from harness.tools.zoo.graph_layers import ImageGraph

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]

SHAPE = (1, 136, 14, 14)
SUITE = """models = ["small.onnx", "root.onnx", "half.onnx", "double.onnx", "stuck.onnx", "pooled.onnx",
  { onnx = "root.onnx", name = "given", inputs = "x.npz" }]
paths = ["opencl"]
"""


def small() -> Any:
    """A grouped convolution that TVM 0.27 as shipped gets wrong, and all of its answer scaled by 1e-7."""
    net = ImageGraph("small", SHAPE)
    x = net.batch_norm(net.conv(net.input, SHAPE[1], 1, groups=4, bias=False))
    model = onnx.load_model_from_string(net.finish((x, SHAPE)).to_bytes())
    model.graph.initializer.append(numpy_helper.from_array(np.array(1e-7, np.float32), "tiny"))
    model.graph.node.append(helper.make_node("Mul", [x.name, "tiny"], ["scaled"]))
    model.graph.output[0].name = "scaled"
    return model


def pooled() -> Any:
    """A convolution and a region of which TVM's importer takes the largest numbers otherwise: wrong alike on LLVM."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 4, 4])
    weight = np.random.default_rng(0).standard_normal((4, 3, 3, 3), np.float32)
    how = {"mode": "max", "sampling_ratio": 2, "output_height": 4, "output_width": 4}
    nodes = [
        helper.make_node("Conv", ["x", "weight"], ["features"], pads=[1, 1, 1, 1]),
        helper.make_node("RoiAlign", ["features", "regions", "images"], ["y"], name="pool", **how),
    ]
    constants = {"weight": weight, "regions": np.array([[0, 0, 13, 13]], np.float32), "images": np.array([0])}
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def of(*nodes: Any, kind: int = TensorProto.FLOAT, **weights: float) -> Any:
    """Sixteen numbers `x` in, `y` out."""
    x, y = (helper.make_tensor_value_info(name, kind, [1, 16]) for name in "xy")
    tensors = [numpy_helper.from_array(np.array(value, np.float32), name) for name, value in weights.items()]
    graph = helper.make_graph(list(nodes), "g", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_every_answer_is_judged_or_it_is_said_why_not(tmp_path: Path, cache: Path) -> None:
    models = {
        "small": small(),
        "root": of(helper.make_node("Sqrt", ["x"], ["y"], name="the root")),
        "half": of(helper.make_node("Mul", ["x", "x"], ["y"]), kind=TensorProto.FLOAT16),
        "double": of(helper.make_node("Mul", ["x", "x"], ["y"]), kind=TensorProto.DOUBLE),
        "pooled": pooled(),
        "stuck": of(helper.make_node("Clip", ["x", "low", "high"], ["y"]), low=5.0, high=6.0),
    }
    for name, model in models.items():
        onnx.save(model, tmp_path / f"{name}.onnx")
    np.savez(tmp_path / "x.npz", x=np.linspace(0, 9, 16, dtype=np.float32).reshape(1, 16))
    (tmp_path / "adreno-bench.toml").write_text(SUITE)
    process = start(tmp_path, cache, "run", "--quick", "--as-shipped")
    out, said = process.communicate(timeout=LONG_S)
    assert process.returncode == ExitCode.WRONG_OR_BROKEN, said
    records = {record.model: record for record in RecordFile(tmp_path / "records.jsonl").load().records}

    def came_to(name: str, outcome: Outcome, message: str = "") -> Record:
        record = records[name]
        assert (record.outcome, message in record.message) == (outcome, True), record.message
        return record

    wrong = came_to("small", Outcome.WRONG_RESULT)
    assert wrong.accuracy
    assert wrong.accuracy.max_abs_err < 1e-6, "which an absolute tolerance once let pass"
    assert not wrong.wall_ms
    assert (wrong.owner, wrong.judge.split()[0]) == (Owner.PATH, "onnxruntime")
    report = wrong.part(WitnessReport)
    assert report
    assert (report.with_judge, report.with_path) == (True, False)
    of_the_importer = came_to("pooled", Outcome.WRONG_RESULT, "behind the same importer gives the same answer")
    assert of_the_importer.message.endswith("and the first operator that is off is RoiAlign 'pool'")
    assert of_the_importer.accuracy
    assert of_the_importer.accuracy.max_rel_err > 0.1
    assert of_the_importer.owner is Owner.IMPORTER
    assert "pooled-opencl-float32-untuned: wrong-result (owner: importer)" in " ".join(out.split())
    came_to("root", Outcome.ORACLE_NOT_FINITE, "it begins with Sqrt 'the root'")
    came_to("half", Outcome.UNSUPPORTED, "no cl_khr_fp16), and the model itself is in half precision")
    came_to("double", Outcome.UNSUPPORTED, "cannot compute in float64 (no cl_khr_fp64), and the model does")
    assert came_to("stuck", Outcome.OK).vacuous == ["output 0 of 1 is constant: 5 everywhere"]
    assert came_to("given", Outcome.OK).vacuous == []
    assert "stuck-opencl-float32-untuned: vacuous: being right proves nothing" in " ".join(out.split())
