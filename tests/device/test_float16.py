"""Half precision on an OpenCL device that has it: Intel's for processors, where `make fp16` installed it."""

import hashlib
from pathlib import Path

import numpy as np
import onnx
import pytest
from compile_requests import request_for
from onnx.reference import ReferenceEvaluator
from waiting import FENCE_S

from device_runner.device import Loadable
from device_runner.registry import open_device
from device_runner.runtimes.opencl import DEVICE_VARIABLE, packaged_driver
from harness.compile.artifacts.compile import compile_model
from harness.tools.zoo.graph_layers import ImageGraph

pytestmark = [
    pytest.mark.device,
    pytest.mark.skipif(packaged_driver() is None, reason="no OpenCL with cl_khr_fp16: `make fp16` installs one"),
]


def small() -> bytes:
    """Two convolutions with a max pool between them, all in images on the texture path."""
    net = ImageGraph("small", (1, 8, 8, 8))
    x = net.max_pool(net.relu(net.conv(net.input, 8, 3, pad=1)), 3, stride=2, pad=1)
    return net.finish((net.conv(x, 8, 3, pad=1), (1, 8, 4, 4))).to_bytes()


@pytest.mark.parametrize("path", ["opencl", "texture"])
def test_a_network_in_half_precision_is_right_to_half_precision(
    path: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tmp_path / "small.onnx"
    model.write_bytes(small())
    made = compile_model(request_for(model, path, "float16", limits=(16384, 16384, 2048)), tmp_path)
    library = tmp_path / made.library
    program = Loadable(library, hashlib.sha256(library.read_bytes()).hexdigest(), made.vdevices)
    x = np.random.default_rng(0).standard_normal((1, 8, 8, 8)).astype("float32")
    monkeypatch.setenv(DEVICE_VARIABLE, "Intel")
    with open_device("local", cache) as device:
        assert device.identity.fp16
        with device.session({}, timeout_s=FENCE_S) as session:
            (got,), _ = session.load(program, timeout_s=FENCE_S).run([x], timeout_s=FENCE_S)
    (right,) = ReferenceEvaluator(onnx.load(model)).run(None, {"input": x})
    off = np.abs(got - right).max() / np.abs(right).max()
    assert made.facts["half_kernels"]
    assert 2.0**-13 < off < 2.0**-7  # no better than half precision is, and no worse than a few of its roundings
