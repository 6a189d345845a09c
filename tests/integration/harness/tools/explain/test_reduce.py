"""Shrinking networks whose defect is known, without a compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from fake_records import a_record

from harness.base.outcome import Outcome
from harness.tools.explain.reduced_folder import write_folder
from harness.tools.explain.reduced_network import SmallNetwork
from harness.tools.explain.reduction import Reduction
from harness.tools.zoo.graph_layers import ImageGraph


def depthwise() -> SmallNetwork:
    net = ImageGraph("net", (1, 16, 14, 14))
    conv = net.conv(net.input, 16, 3, stride=2, pad=1, groups=16)
    model = net.finish((net.relu(conv), (1, 16, 7, 7))).to_bytes()
    x = np.ones((1, 16, 14, 14), np.float32)
    return SmallNetwork(model, {onnx.load_model_from_string(model).graph.input[0].name: x})


def test_with_the_wheel_alone_the_script_shows_kernels_and_llvm_and_says_what_it_needs(tmp_path: Path) -> None:
    network = depthwise()
    record = a_record(outcome=Outcome.WRONG_RESULT, message="output 0 is off by 3", path="opencl")
    shape = [d.dim_value for d in network.proto().graph.output[0].type.tensor_type.shape.dim]
    write_folder(Reduction(record, 2, network, record, [np.full(shape, 9.0, np.float32)], True, 9), tmp_path, tmp_path)
    done = subprocess.run(
        [sys.executable, "-I", "reproduce.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "behind the same importer LLVM is off by" in done.stdout
    assert "__kernel void" in (tmp_path / "kernels.cl").read_text()
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("the rest needs a TVM built with USE_OPENCL=ON")
    assert "Traceback" not in done.stderr
    assert "TVM's wheels show the kernels" in (tmp_path / "report.md").read_text()
