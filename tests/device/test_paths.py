"""Every path computes the right answer on an OpenCL device, and without its workarounds the wrong one."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from compile_once import unless_large, zoo_compiled
from compile_requests import request_for
from onnx import TensorProto, helper

from device_runner.runtimes import opencl as opencl_runtime
from harness.base.suite import load_suite
from harness.compile.artifacts.artifact import CompileResult
from harness.compile.artifacts.compile import compile_model
from harness.compile.models.graph_layers import ImageGraph
from harness.compile.models.spec import InputSpec, seeded_inputs

pytestmark = pytest.mark.device

DEFAULT_SUITE = Path(__file__).parents[2] / "adreno-bench.toml"

Answers = list[np.ndarray[Any, Any]]
Answer = Callable[..., Answers]


def small() -> bytes:
    """Two convolutions with a max pool between them, all in images on the texture path."""
    net = ImageGraph("small", (1, 8, 8, 8))
    x = net.max_pool(net.relu(net.conv(net.input, 8, 3, pad=1)), 3, stride=2, pad=1)
    return net.finish((net.conv(x, 8, 3, pad=1), (1, 8, 4, 4))).to_bytes()


def averaged() -> bytes:
    """Two convolutions with an average pool between them, as DenseNet has them, all in images on the texture path."""
    net = ImageGraph("averaged", (1, 8, 8, 8))
    x = net.average_pool(net.conv(net.input, 8, 3, pad=1), 2, stride=2)
    return net.finish((net.conv(x, 8, 3, pad=1), (1, 8, 4, 4))).to_bytes()


def pooled_into_a_smaller_image() -> bytes:
    """Two convolutions with a max pool between them, after which TVM wants another layout of the image."""
    net = ImageGraph("pooled", (1, 8, 128, 128))
    x = net.max_pool(net.conv(net.input, 8, 3, pad=1), 2, stride=2)
    return net.finish((net.conv(x, 8, 3, pad=1), (1, 8, 64, 64))).to_bytes()


def convolved_with_a_sum() -> bytes:
    """Two convolutions that TVM makes one function of: its input is in a buffer here and in an image there."""
    net = ImageGraph("sums", (1, 8, 8, 8))
    first = net.conv(net.input, 8, 3, pad=1, bias=False)
    both = (first, net.add(net.input, first))
    return net.finish(*((net.conv(one, 8, 3, pad=1, bias=False), (1, 8, 8, 8)) for one in both)).to_bytes()


def grouped() -> bytes:
    """A 1x1 convolution in two groups and an activation: what makes ShuffleNet go wrong, as small as can be."""
    net = ImageGraph("grouped", (1, 8, 8, 8))
    return net.finish((net.relu(net.conv(net.input, 8, 1, groups=2)), (1, 8, 8, 8))).to_bytes()


def as_caffe2_exports_it() -> bytes:
    """An input with a slash in its name, a dropout, and operators that take any number of tensors."""
    net = ImageGraph("caffe2", (1, 8, 8, 8))
    conv = net.conv(net.input, 8, 3, pad=1)
    model = onnx.load_model_from_string(net.finish((conv, (1, 8, 8, 8))).to_bytes())
    graph = model.graph
    graph.input[0].name = graph.node[0].input[0] = "gpu_0/data:0"
    graph.node.append(helper.make_node("Dropout", [conv.name], ["dropped"]))
    for kind in ("Sum", "Mean", "Max", "Min"):
        graph.node.append(helper.make_node(kind, ["dropped", "gpu_0/data:0", "dropped"], [kind]))
        graph.output.append(helper.make_tensor_value_info(kind, TensorProto.FLOAT, [1, 8, 8, 8]))
    return bytes(model.SerializeToString())


def two_outputs() -> bytes:
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Mul", ["a", "b"], ["product"])]
    infos = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "ab"}
    outs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("sum", "product")]
    graph = helper.make_graph(nodes, "g", list(infos.values()), outs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return bytes(model.SerializeToString())


@pytest.fixture(scope="session")
def runtime(sidecar_cache: Path) -> Any:
    if stock := os.environ.get("ADRENO_BENCH_TEST_STOCK"):
        opencl_runtime.load(Path(stock) / "libtvm_runtime_opencl.so")
    elif opencl_runtime.needed():
        opencl_runtime.load(opencl_runtime.sidecar(sidecar_cache))
    import tvm

    return tvm


@pytest.fixture
def zoo_answer(runtime: Any, common: Path) -> Answer:
    """Run a network of the zoo on a path, on the same inputs every time. It is compiled once."""

    def run(name: str, path: str, *, entry: str = "main_to_host") -> Answers:
        return call(runtime, *zoo_compiled(common, name, path), entry, "cpu" if path == "cpu" else "opencl")

    return run


@pytest.fixture
def answer(runtime: Any, tmp_path: Path) -> Answer:
    """Compile a model for a path and run it once, on the same inputs every time."""

    def run(
        model: bytes, path: str, *, as_shipped: bool = False, but_for: str = "", entry: str = "main_to_host"
    ) -> Answers:
        out = tmp_path / f"{path}-{len(list(tmp_path.iterdir()))}"
        out.mkdir()
        (out / "model.onnx").write_bytes(model)
        request = request_for(out / "model.onnx", path, as_shipped=as_shipped)
        request = replace(request, quirks=[quirk for quirk in request.quirks if quirk != but_for])
        return call(runtime, out, compile_model(request, out), entry, "cpu" if path == "cpu" else "opencl")

    return run


def call(tvm: Any, folder: Path, made: CompileResult, entry: str, kind: str) -> Answers:
    device = tvm.device(kind)
    machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(folder / made.library)), [device] * made.vdevices)
    inputs = seeded_inputs([InputSpec(name, tuple(shape), dtype) for name, shape, dtype in made.inputs], seed=7)
    machine.set_input(entry, *(tvm.runtime.tensor(array) for array in inputs.values()))
    machine.invoke_stateful(entry)
    got = machine.get_outputs(entry)
    tensors = [got] if hasattr(got, "numpy") else list(got)
    assert len(tensors) == made.outputs
    where = tvm.cpu() if entry == "main_to_host" else device
    assert all(tensor.device == where for tensor in tensors)
    return [tensor.numpy() for tensor in tensors]


@pytest.mark.parametrize("path", ["opencl", "texture"])
@pytest.mark.parametrize("entry", ["main", "main_to_host"])
def test_tiny_is_right(zoo_answer: Answer, path: str, entry: str) -> None:
    np.testing.assert_allclose(zoo_answer("tiny", path, entry=entry), zoo_answer("tiny", "cpu"), rtol=0, atol=1e-5)


@pytest.mark.parametrize("path", ["opencl", "texture"])
@pytest.mark.parametrize("entry", ["main", "main_to_host"])
def test_several_outputs_keep_their_order(answer: Answer, path: str, entry: str) -> None:
    a, b = seeded_inputs([InputSpec("a", (2, 3)), InputSpec("b", (2, 3))], seed=7).values()
    got = answer(two_outputs(), path, entry=entry)
    np.testing.assert_allclose(np.stack(got), np.stack([np.add(a, b), np.multiply(a, b)]), rtol=1e-6)


def test_stores_and_pools_in_images_are_right_only_when_worked_around(answer: Answer) -> None:
    (right,) = answer(small(), "cpu")
    (worked_around,) = answer(small(), "texture")
    (as_shipped,) = answer(small(), "texture", as_shipped=True)
    np.testing.assert_allclose(worked_around, right, rtol=0, atol=1e-5)
    assert np.abs(as_shipped - right).max() > 0.1 * np.abs(right).max()


def test_a_copy_between_images_of_different_layouts_is_made_only_when_worked_around(answer: Answer) -> None:
    right = answer(pooled_into_a_smaller_image(), "cpu")
    np.testing.assert_allclose(answer(pooled_into_a_smaller_image(), "texture"), right, rtol=0, atol=1e-5)
    with pytest.raises(RuntimeError, match="OpenCL Error, code=-30: CL_INVALID_VALUE"):
        answer(pooled_into_a_smaller_image(), "texture", but_for="image-to-image-copy")


def test_calls_of_one_function_on_an_image_and_on_a_buffer_are_right(answer: Answer) -> None:
    right = answer(convolved_with_a_sum(), "cpu")  # without the workaround this process dies of SIGSEGV
    np.testing.assert_allclose(answer(convolved_with_a_sum(), "texture"), right, rtol=0, atol=1e-4)


def test_average_pool_into_an_image_is_right(answer: Answer) -> None:
    np.testing.assert_allclose(answer(averaged(), "texture"), answer(averaged(), "cpu"), rtol=0, atol=1e-5)


def test_epilogue_of_a_grouped_convolution_is_right_only_when_worked_around(answer: Answer) -> None:
    (right,) = answer(grouped(), "cpu")
    for path in ("opencl", "texture"):
        (worked_around,) = answer(grouped(), path)
        np.testing.assert_allclose(worked_around, right, rtol=0, atol=1e-5, err_msg=path)
    (as_shipped,) = answer(grouped(), "opencl", as_shipped=True)
    assert np.abs(as_shipped - right).max() > 0.1 * np.abs(right).max()


@pytest.mark.parametrize("path", ["opencl", "texture"])
def test_names_and_operators_of_caffe2_are_right(answer: Answer, path: str) -> None:
    right = answer(as_caffe2_exports_it(), "cpu")
    np.testing.assert_allclose(answer(as_caffe2_exports_it(), path), right, rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", unless_large(load_suite(DEFAULT_SUITE).models))
def test_the_default_suite_is_right_on_every_path(zoo_answer: Answer, name: str) -> None:
    (right,) = zoo_answer(name, "cpu")
    for path in ("opencl", "texture"):
        (got,) = zoo_answer(name, path)
        np.testing.assert_allclose(got, right, rtol=0, atol=1e-4 * np.abs(right).max(), err_msg=path)
