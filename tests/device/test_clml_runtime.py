"""The model of TVM's CLML runtime: its bytes, what its operators compute, and what it reads otherwise than was meant.

test_clml_runtime_hostile.py runs this file again under AddressSanitizer and names the library to test in CLML_MODEL.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clml_graphs import SYMBOL, Array, Graph, compute, golden, random_tensors

from device_runner.runtimes import clml as clml_runtime
from device_runner.runtimes import opencl as opencl_runtime

pytestmark = pytest.mark.device

GOLDEN = golden()
MODULES = [pytest.param(module, id=name) for name, modules in GOLDEN.items() for module in modules]
Run = Callable[..., list[Array]]

REFUSED = {
    "conv2d_depthwise_bn_relu6": "only supports group size of 1",
    "conv2d_depthwise_f16": "only supports group size of 1",
    "conv2d_grouped": "only supports group size of 1",
    "mobilenet_blocks_relu": "only supports group size of 1",
    "conv2d_dynamic_batch": "clCreateMLTensorWithUsageQCOM",
    "conv2d_add_scalar": "0 dimensions",
    "conv2d_add_fullconst": "a bias that is not one value for each channel",
    "conv2d_transpose_bn_relu": "Key: batchnorm is not found",
    "add_self": "read for number 2",
    "max_pool2d_nhwc": "batch or channels that do not fit",
}
"""Golden modules that TVM writes and its runtime cannot run, and what it or the model says."""

INCONSISTENT = {"pad_conv2d_both"}
"""The output is larger than what the padding that TVM writes leads to."""


@pytest.fixture(scope="session")
def tvm(sidecar_cache: Path) -> Any:
    named = os.environ.get("CLML_MODEL")
    clml_runtime.load(Path(named) if named else clml_runtime.library(sidecar_cache))
    import tvm

    return tvm


@pytest.fixture(scope="session")
def create(tvm: Any) -> Callable[..., Any]:
    from tvm_ffi import get_global_func

    factory: Callable[..., Any] = get_global_func("runtime.clml_runtime_create")
    return factory


@pytest.fixture(scope="session")
def load(tvm: Any) -> Callable[[bytes], Any]:
    from tvm_ffi import get_global_func

    loader: Callable[[bytes], Any] = get_global_func(clml_runtime.LOADER)
    return loader


@pytest.fixture(scope="session")
def saved(tvm: Any) -> Callable[[Any], bytes]:
    from tvm_ffi import get_global_func

    save: Callable[[Any], bytes] = get_global_func("adreno_bench.module_bytes")
    return save


@pytest.fixture(scope="session")
def run(tvm: Any, create: Callable[..., Any]) -> Run:
    """Runs a hand-written graph: inputs to outputs."""

    def run_graph(graph: Graph, *inputs: Array, device: Any = None) -> list[Array]:
        module = create(SYMBOL, graph.json(), graph.const_names())
        return run_module(tvm, module, SYMBOL, json.loads(graph.json()), inputs, graph.constants, device)

    return run_graph


def run_module(
    tvm: Any,
    module: Any,
    symbol: str,
    graph: dict[str, Any],
    inputs: Sequence[Array],
    constants: Sequence[Array],
    device: Any = None,
) -> list[Array]:
    device = device or tvm.cpu()
    module[f"__init_{symbol}"]([tvm.runtime.tensor(values) for values in constants])
    outputs = []
    for node, index, *_ in graph["heads"]:
        attrs = graph["nodes"][node]["attrs"]
        outputs.append(tvm.runtime.empty(tuple(attrs["shape"][index]), attrs["dtype"][index], device))
    module[symbol](*(tvm.runtime.tensor(values, device) for values in inputs), *outputs)
    return [output.numpy() for output in outputs]


def close(got: Array, wanted: Array) -> None:
    assert got.dtype == wanted.dtype
    assert got.shape == wanted.shape
    tolerance = 2e-5 if got.dtype == np.float32 else 4e-3
    np.testing.assert_allclose(got.astype("f8"), wanted.astype("f8"), rtol=tolerance, atol=tolerance)


def image(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(1).normal(size=shape).astype(dtype)


# The bytes.


@pytest.mark.parametrize("module", MODULES)
def test_tvms_bytes_are_read_and_written_unchanged(
    module: dict[str, Any], load: Callable[[bytes], Any], saved: Callable[[Any], bytes]
) -> None:
    data = bytes.fromhex(module["bytes_hex"])
    loaded = load(data)
    assert loaded.kind == "clml"
    assert saved(loaded) == data
    assert loaded["get_symbol"]() == module["symbol"]
    assert list(loaded["get_const_vars"]()) == module["const_names"]
    assert json.loads(loaded.inspect_source()) == module["graph"]


@pytest.mark.parametrize("module", MODULES)
def test_the_factory_makes_tvms_bytes(
    module: dict[str, Any], load: Callable[[bytes], Any], create: Callable[..., Any], saved: Callable[[Any], bytes]
) -> None:
    data = bytes.fromhex(module["bytes_hex"])
    assert saved(create(module["symbol"], load(data).inspect_source(), module["const_names"])) == data


# What it computes.


@pytest.mark.parametrize("module", [p for p in MODULES if p.id not in {*REFUSED, *INCONSISTENT}])
def test_what_tvm_writes_computes_what_was_meant(
    module: dict[str, Any], tvm: Any, load: Callable[[bytes], Any], sidecar_cache: Path
) -> None:
    opencl_runtime.load(opencl_runtime.sidecar(sidecar_cache))
    graph = module["graph"]
    inputs, constants = random_tensors(graph, "input"), random_tensors(graph, "const", 1)
    loaded = load(bytes.fromhex(module["bytes_hex"]))
    got = run_module(tvm, loaded, module["symbol"], graph, inputs, constants, tvm.opencl())
    for one, wanted in zip(got, compute(graph, inputs, constants), strict=True):
        close(one, wanted)


@pytest.mark.parametrize("module", [p for p in MODULES if p.id in REFUSED])
def test_what_tvms_runtime_refuses_is_refused(
    module: dict[str, Any], tvm: Any, load: Callable[[bytes], Any], request: pytest.FixtureRequest
) -> None:
    loaded = load(bytes.fromhex(module["bytes_hex"]))
    constants = random_tensors(module["graph"], "const")
    with pytest.raises(Exception, match=REFUSED[request.node.callspec.id]):
        loaded[f"__init_{module['symbol']}"]([tvm.runtime.tensor(values) for values in constants])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("fused", ["", "bias.", "relu.", "relu.bias.", "bn.", "bn.bias.", "relu.bn.", "relu.bn.bias."])
def test_a_convolution_with_all_that_is_fused(fused: str, dtype: str, run: Run) -> None:
    graph = Graph(dtype)
    inputs = [graph.input(2, 5, 9, 7), graph.random(7, 5, 3, 2)]
    inputs += [graph.random(1, 7, 1, 1)] if "bias" in fused else []
    inputs += [graph.random(7) for _ in range(4)] if "bn" in fused else []
    attrs: dict[str, Any] = {"activation_type": "relu"} if "relu" in fused else {}
    attrs |= {"batchnorm": ["1", "0.000010", "1", "1"]} if "bn" in fused else {}
    graph.out(graph.conv(f"{fused}nn.conv2d", inputs, (2, 7, 4, 9), strides=[2, 1], padding=[0, 2, 1, 1], **attrs))
    agree(run, graph, image(2, 5, 9, 7, dtype=dtype))


def agree(run: Run, graph: Graph, *inputs: Array) -> None:
    wanted = compute(json.loads(graph.json()), inputs, graph.constants)
    for got, one in zip(run(graph, *inputs), wanted, strict=True):
        close(got, one)


@pytest.mark.parametrize(("dilation", "height", "width"), [([2, 1], 8, 8), ([1, 3], 10, 4), ([4, 4], 4, 2)])
def test_dilation_is_vertical_then_horizontal(dilation: list[int], height: int, width: int, run: Run) -> None:
    graph = Graph()
    inputs = [graph.input(1, 3, 10, 8), graph.random(4, 3, 3, 3)]
    graph.out(graph.conv("nn.conv2d", inputs, (1, 4, height, width), dilation=dilation))
    agree(run, graph, image(1, 3, 10, 8))


@pytest.mark.parametrize(
    ("attrs", "height", "width"),
    [
        ({"strides": [2, 2]}, 9, 11),
        ({"strides": [2, 2], "output_padding": [1, 1]}, 10, 12),
        ({"strides": [3, 1], "padding": [0, 1, 0, 1]}, 15, 6),
        ({"dilation": [2, 1], "groups": 5}, 7, 6),
    ],
)
def test_a_transposed_convolution(attrs: dict[str, Any], height: int, width: int, run: Run) -> None:
    """Its groups are not read, and its output padding only shows in the output's shape."""
    graph = Graph()
    inputs = [graph.input(1, 4, 5, 6), graph.random(3, 4, 3, 3), graph.random(1, 3, 1, 1)]
    graph.out(graph.conv("relu.bias.nn.conv2d_transpose", inputs, (1, 3, height, width), **attrs))
    agree(run, graph, image(1, 4, 5, 6))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["nn.max_pool2d", "nn.avg_pool2d"])
def test_pooling_leaves_padding_out(name: str, dtype: str, run: Run) -> None:
    """`ceil_mode`, `count_include_pad` and `dilation` are written and never read."""
    graph = Graph(dtype)
    unread = {"ceil_mode": 1, "count_include_pad": 1, "dilation": [2, 2]}
    geometry = {"pool_size": [3, 2], "strides": [2, 3], "padding": [1, 0, 1, 0]}
    graph.out(graph.pool(name, [graph.input(1, 3, 8, 10)], (1, 3, 5, 4), **geometry, **unread))
    agree(run, graph, image(1, 3, 8, 10, dtype=dtype))


def test_global_pooling_takes_width_for_height(run: Run) -> None:
    graph = Graph()
    graph.out(graph.kernel("nn.global_avg_pool2d", [graph.input(1, 2, 4, 6)], (1, 2, 1, 1), axis=[2, 3], keepdims=1))
    x = image(1, 2, 4, 6)
    close(run(graph, x)[0], x[:, :, :, :4].mean(axis=(2, 3), keepdims=True))


@pytest.mark.parametrize(
    ("shape", "axis", "computed"),
    [((3, 10), 1, 1), ((2, 3, 4, 5), 1, 1), ((2, 3, 4, 5), 3, 3), ((2, 3, 4, 5), 2, 1), ((2, 3, 4), 2, 1)],
)
def test_softmax_knows_two_axes(shape: tuple[int, ...], axis: int, computed: int, run: Run) -> None:
    """The last of four, or else the second, whatever the attribute says."""
    graph = Graph()
    graph.out(graph.kernel("relax.nn.softmax", [graph.input(*shape)], shape, axis=axis))
    x = 10 * image(*shape)
    powers = np.exp(x - x.max(axis=computed, keepdims=True))
    close(run(graph, x)[0], powers / powers.sum(axis=computed, keepdims=True))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "maximum", "minimum"])
def test_binary_operators_take_their_operands_in_order(name: str, dtype: str, run: Run) -> None:
    graph = Graph(dtype)
    graph.out(graph.kernel(f"relax.{name}", [graph.input(1, 4, 3), graph.random(1, 4, 3)], (1, 4, 3)))
    agree(run, graph, image(1, 4, 3, dtype=dtype))


def test_batch_norm_uses_gamma_and_beta_whatever_center_and_scale_say(run: Run) -> None:
    graph = Graph()
    inputs = [graph.input(2, 3, 4, 4), *(graph.random(3) for _ in range(4))]
    unread = {"center": 0, "scale": 0, "training": 1, "momentum": 0.1}
    graph.out(graph.kernel("nn.batch_norm", inputs, (2, 3, 4, 4), axis=1, epsilon=1e-3, **unread))
    agree(run, graph, image(2, 3, 4, 4))


def test_nan_survives(run: Run) -> None:
    graph = Graph()
    x = graph.input(1, 1, 2, 2)
    graph.out(graph.pool("nn.max_pool2d", [graph.kernel("relax.nn.relu", [x], (1, 1, 2, 2))], (1, 1, 1, 1)))
    assert np.isnan(run(graph, np.array([[[[1, np.nan], [-1, 2]]]], "float32"))[0]).all()


def test_halves_are_rounded_to_the_nearest(run: Run) -> None:
    graph = Graph("float16")
    graph.out(graph.kernel("relax.multiply", [graph.input(1, 2000), graph.input(1, 2000)], (1, 2000)))
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=(1, 2000)) * 10.0 ** rng.integers(-4, 3, (1, 2000)) for _ in range(2))
    x, y = a.astype("float16"), b.astype("float16")
    wanted = (x.astype("float32") * y.astype("float32")).astype("float16")
    np.testing.assert_array_equal(run(graph, x, y)[0], wanted)


# What it reads otherwise than it was meant.


def test_one_row_of_values_for_each_channel_passes_for_a_bias(run: Run) -> None:
    """A constant along the width that happens to be as long as there are channels is added along the channels."""
    graph = Graph()
    row = graph.random(1, 1, 1, 6)
    graph.out(graph.conv("bias.nn.conv2d", [graph.input(1, 4, 6, 6), graph.random(6, 4, 3, 3), row], (1, 6, 6, 6)))
    agree(run, graph, image(1, 4, 6, 6))


def two_outputs() -> Graph:
    graph = Graph()
    relu = graph.kernel("relax.nn.relu", [graph.input(1, 2, 3)], (1, 2, 3))
    return graph.out(relu, graph.kernel("relax.add", [relu, relu], (1, 2, 3)))


def test_outputs_outside_the_gpu_all_get_the_first(run: Run) -> None:
    x = image(1, 2, 3)
    first, second = run(two_outputs(), x)
    close(first, np.maximum(x, 0))
    close(second, np.maximum(x, 0))


def test_a_node_has_one_tensor_for_all_its_outputs(run: Run, tvm: Any, sidecar_cache: Path) -> None:
    opencl_runtime.load(opencl_runtime.sidecar(sidecar_cache))
    graph = Graph()
    x = graph.input(1, 2, 3)
    relu = graph.kernel("relax.nn.relu", [x], (1, 2, 3))
    graph.nodes[relu]["attrs"] |= {"shape": [[1, 2, 3]] * 2, "dtype": ["float32"] * 2}
    graph.heads = [[relu, 0, 0], [relu, 1, 0]]
    values = image(1, 2, 3)
    for output in run(graph, values, device=tvm.opencl()):
        close(output, np.maximum(values, 0))


def test_a_later_output_is_written_over_one_that_the_graph_itself_reads(
    run: Run, tvm: Any, sidecar_cache: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As an encoder with skip connections: the memory of a skip is given away after its last reader in the graph."""
    opencl_runtime.load(opencl_runtime.sidecar(sidecar_cache))
    graph = Graph()
    skip = graph.conv("nn.conv2d", [graph.input(1, 1, 4, 4), graph.random(4, 1, 3, 3)], (1, 4, 4, 4))
    pooled = graph.pool("nn.max_pool2d", [skip], (1, 4, 2, 2))
    deep = graph.conv("relu.nn.conv2d", [pooled, graph.random(8, 4, 3, 3)], (1, 8, 2, 2), activation_type="relu")
    graph.out(skip, deep)
    x = image(1, 1, 4, 4)
    got = run(graph, x, device=tvm.opencl())
    wanted = compute(json.loads(graph.json()), [x], graph.constants)
    close(got[1], wanted[1])
    close(got[0].ravel()[:32], wanted[1].ravel())
    close(got[0].ravel()[32:], wanted[0].ravel()[32:])
    assert f"(node {deep}) is written over the output of 'openclml.nn.conv2d' (node {skip})" in capfd.readouterr().err


def test_integers_are_refused(run: Run) -> None:
    graph = Graph("int64")
    graph.out(graph.kernel("reshape", [graph.input(2, 3)], (3, 2)))
    with pytest.raises(Exception, match="Datatype int64 unsupported by CLML runtime"):
        run(graph, np.zeros((2, 3), "int64"))


@pytest.mark.parametrize(
    ("name", "message"),
    [("relax.clip", "Unsupported op: openclml.relax.clip"), ("dequant_matmul", "Unsupported op")],
)
def test_an_operator_that_tvms_runtime_has_not_is_refused(name: str, message: str, run: Run) -> None:
    graph = Graph()
    graph.out(graph.kernel(name, [graph.input(1, 2)], (1, 2)))
    with pytest.raises(Exception, match=message):
        run(graph, image(1, 2))


def test_it_wants_every_argument(run: Run, create: Callable[..., Any], tvm: Any) -> None:
    graph = Graph()
    graph.out(graph.kernel("relax.add", [graph.input(4), graph.random(4)], (4,)))
    module = create(SYMBOL, graph.json(), graph.const_names())
    tensor = tvm.runtime.tensor(np.ones(4, "float32"))
    with pytest.raises(Exception, match="has not been initialized"):
        module[SYMBOL](tensor, tensor)
    with pytest.raises(Exception, match="The number of input constants must match"):
        module[f"__init_{SYMBOL}"]([])
    with pytest.raises(Exception, match="shape and type that the graph states"):
        module[f"__init_{SYMBOL}"]([tvm.runtime.tensor(np.ones(3, "float32"))])
    module[f"__init_{SYMBOL}"]([tensor])
    with pytest.raises(Exception, match="mismatch in the number of provided data"):
        module[SYMBOL](tensor)
    with pytest.raises(Exception, match="holds 12 bytes, and the graph wants 16"):
        module[SYMBOL](tensor, tvm.runtime.tensor(np.ones(3, "float32")))
