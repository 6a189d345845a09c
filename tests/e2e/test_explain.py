"""From a wrong network to the operator, the kernel and a small network that shows it, as a person goes it."""

import json
import re
import shlex
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import bench

from harness.base.outcome import ExitCode
from harness.tools.explain.trial import MODEL, VALUES
from harness.tools.zoo.graph_layers import ImageGraph

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]

CASE = "grouped-opencl-float32-untuned"
FILE = "wrong.jsonl"


def grouped() -> bytes:
    """A grouped 1x1 convolution whose batch norm is fused to it, which TVM 0.27 gets wrong on plain OpenCL."""
    net = ImageGraph("grouped", (1, 136, 14, 14))
    conv = net.conv(net.relu(net.input), 136, 1, groups=4, bias=False)
    return net.finish((net.relu(net.batch_norm(conv)), (1, 136, 14, 14))).to_bytes()


@pytest.mark.long
def test_a_wrong_network_is_traced_to_the_operators_that_must_not_be_fused(tmp_path: Path, cache: Path) -> None:
    (tmp_path / "grouped.onnx").write_bytes(grouped())
    (tmp_path / "adreno-bench.toml").write_text('models = ["grouped.onnx"]\npaths = ["opencl"]\n')
    code, out, err = bench(tmp_path, cache, "run", "--as-shipped", "--records", FILE)
    assert code == ExitCode.WRONG_OR_BROKEN, err
    hint = re.search(f"`adreno-bench (diverge {CASE} [^`]+)`", out)
    assert hint, out

    code, out, err = bench(tmp_path, cache, *shlex.split(hint[1]), "--json")
    assert code == ExitCode.GOOD, err
    found = json.loads(out)
    assert [(one["number"], one["operator"], one["reads"]) for one in found["first"]] == [
        (3, "BatchNormalization", {"conv_1": [1, 136, 14, 14]})
    ]
    around = [(piece["operators"], piece["outcome"]) for piece in found["around"]]
    assert around == [([3], "ok"), ([2, 3], "wrong-result")], "with the first cut the defect is gone, and that is said"
    piece = onnx.load(Path(found["reproducer"]) / MODEL)
    assert [node.op_type for node in piece.graph.node] == ["Conv", "BatchNormalization"]
    assert np.load(Path(found["reproducer"]) / VALUES)["relu_0"].min() == 0.0, (
        "what it reads is what the oracle has there"
    )
    (kernel,) = found["kernels"]
    assert Path(kernel["file"]).name.startswith("fused_conv2d")

    code, out, err = bench(tmp_path, cache, "kernels", CASE, "--records", FILE)
    assert code == ExitCode.GOOD, err
    folder = re.search(r"are in (\S+)", out)
    assert folder
    assert any("fused_conv2d" in file.name for file in Path(folder[1]).iterdir())
