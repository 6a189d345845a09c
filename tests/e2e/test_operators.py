"""Single operators, and a network reduced to one, as a person asks for them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import bench
from onnx import TensorProto, helper, numpy_helper

from harness.base.outcome import ExitCode
from harness.tools.zoo.graph_layers import ImageGraph

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]


@pytest.mark.long
def test_the_store_into_images_is_wrong_as_shipped_and_right_when_worked_round(tmp_path: Path, cache: Path) -> None:
    words = ["ops", "--op", "relu_after_conv", "--path", "opencl", "--path", "texture", "--json"]
    code, out, err = bench(tmp_path, cache, *words)
    assert code == ExitCode.WRONG_OR_BROKEN, err
    found = {(cell["path"], cell["as_shipped"]): cell["verdict"] for cell in json.loads(out)}
    assert found == {
        ("opencl", False): "right",
        ("opencl", True): "right",
        ("texture", False): "right",
        ("texture", True): "wrong",
    }


@pytest.mark.long
def test_a_network_that_does_not_compile_is_reduced_to_the_operator_and_a_script_that_shows_it(
    tmp_path: Path, cache: Path
) -> None:
    net = ImageGraph("depthwise", (1, 8, 8, 8))
    conv = net.conv(net.relu(net.input), 8, 3, pad=1, groups=8)
    (tmp_path / "depthwise.onnx").write_bytes(net.finish((net.relu(conv), (1, 8, 8, 8))).to_bytes())
    (tmp_path / "adreno-bench.toml").write_text('models = ["depthwise.onnx"]\npaths = ["texture"]\n')
    code, out, err = bench(tmp_path, cache, "reduce", "--as-shipped", "--out", "found", "--json")
    assert code == ExitCode.GOOD, err
    found = json.loads(out)
    assert (found["outcome"], found["operators_before"], found["operators"]) == ("compile-error", 3, ["Conv"])
    assert found["elements"] <= 16
    script = subprocess.run(
        [sys.executable, "reproduce.py"], cwd=tmp_path / "found", capture_output=True, text=True, check=False
    )
    assert "Divide by zero" in script.stderr


@pytest.mark.long
def test_what_the_importer_misreads_is_reduced_to_the_operator_by_the_outside_judge(
    tmp_path: Path, cache: Path
) -> None:
    net = ImageGraph("pooled", (1, 4, 8, 8))
    x = net.relu(net.conv(net.input, 4, 3, pad=1))
    model = onnx.load_model_from_string(net.finish((x, (1, 4, 8, 8))).to_bytes())
    regions = {"regions": np.array([[0, 0, 7, 7]], np.float32), "images": np.array([0])}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in regions.items())
    how = {"mode": "max", "sampling_ratio": 2, "output_height": 4, "output_width": 4}
    pool = helper.make_node("RoiAlign", [x.name, *regions], ["small"], name="pool", **how)
    model.graph.node.extend([pool, helper.make_node("Relu", ["small"], ["y"], name="last")])
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 4, 4)))
    model.opset_import[0].version = 18
    onnx.save(model, tmp_path / "pooled.onnx")
    words = ["reduce", "--as-shipped", "--model", "pooled.onnx", "--case", "pooled-opencl-*-untuned", "--out", "found"]
    code, out, err = bench(tmp_path, cache, *words, "--json")
    assert code == ExitCode.GOOD, err
    found = json.loads(out)
    assert (found["outcome"], found["operators_before"], found["operators"]) == ("wrong-result", 4, ["RoiAlign"])
    assert "behind the same importer gives the same answer" in found["message"]
    assert "is what onnxruntime" in (tmp_path / "found" / "report.md").read_text()


@pytest.mark.long
def test_a_wrong_answer_of_clml_is_reduced_to_a_script_that_shows_it(tmp_path: Path, cache: Path) -> None:
    pool = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)
    ends = [helper.make_tensor_value_info(name, 1, (1, 8, 6, 6)) for name in ("x", "y")]
    model = helper.make_model(helper.make_graph([pool], "pool", ends[:1], ends[1:]), ir_version=9)
    model.opset_import[0].version = 17
    (tmp_path / "pool.onnx").write_bytes(model.SerializeToString())
    words = ["reduce", "--as-shipped", "--model", "pool.onnx", "--case", "pool-clml-*-untuned", "--out", "found"]
    code, _, err = bench(tmp_path, cache, *words)
    assert code == ExitCode.GOOD, err
    script = subprocess.run(
        [sys.executable, "reproduce.py"], cwd=tmp_path / "found", capture_output=True, text=True, check=True
    )
    off, peak = (float(number) for number in script.stdout.partition("error: ")[2].split(" of "))
    assert off > 0.1 * peak, "a pool that does not count its padding, as it was told to"
