"""Networks to try a judge on: the zoo, the light models of the `onnx` package, and small odd ones whose sums are hard.

    python -m benchmarks.known_networks FOLDER
    adreno-bench run --suite FOLDER/odd.toml --quick

The first command writes the odd ones and a suite file that runs them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.light_models import LIGHT, with_weights
from benchmarks.light_models import NAMES as LIGHT_NAMES
from harness.compile.artifacts.planner import SEED
from harness.compile.models.onnx_inputs import input_specs
from harness.compile.models.spec import Inputs, seeded_inputs
from harness.tools.zoo.models import ZOO, ZooModel

if TYPE_CHECKING:
    from device_runner.device import Array


@dataclass(frozen=True)
class KnownNetwork:
    """A network, made when it is wanted."""

    group: str
    name: str
    make: Callable[[], onnx.ModelProto]
    drawn: Inputs

    def inputs(self, model: onnx.ModelProto, other: int = 0) -> dict[str, Array]:
        """Return the inputs that a suite would give it, or others of the same kind."""
        return seeded_inputs(input_specs(model), SEED + other, self.drawn)


def known_networks(names: Iterable[str] = ()) -> list[KnownNetwork]:
    """Return all of them, or those of these groups, names and ONNX files."""
    zoo = [KnownNetwork("zoo", one.name, partial(_zoo, one), one.input_values(Path())) for one in ZOO]
    light = [KnownNetwork("light", f"light_{name}", partial(_light, name), {}) for name in LIGHT_NAMES]
    odd = [KnownNetwork("odd", name, make, {}) for name, make in ODD.items()]
    wanted = set(names)
    files = [KnownNetwork("file", Path(name).stem, partial(onnx.load, name), {}) for name in names if _is_file(name)]
    return [*(one for one in (*zoo, *light, *odd) if not wanted or wanted & {one.group, one.name}), *files]


def _is_file(name: str) -> bool:
    return name.endswith(".onnx")


def _zoo(one: ZooModel) -> onnx.ModelProto:
    return onnx.load_from_string(one.build().to_bytes())


def _light(name: str) -> onnx.ModelProto:
    return with_weights(onnx.load(LIGHT / f"light_{name}.onnx"))


class _Odd:
    """Writes a small network with one input, operator by operator."""

    def __init__(self, *shape: int, seed: int = 1) -> None:
        self.shape = shape
        self.random = np.random.default_rng(seed)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def weight(self, array: Any) -> str:
        """Return a constant of the network."""
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def normal(self, *shape: int, deviation: float = 1.0, mean: float = 0.0) -> str:
        """Return a constant of normal numbers."""
        return self.weight((mean + deviation * self.random.standard_normal(shape)).astype(np.float32))

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """One more operator."""
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    def model(self, *ends: str) -> onnx.ModelProto:
        """Return the network that ends there."""
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        outputs = [onnx.ValueInfoProto(name=end) for end in ends]
        graph = helper.make_graph(self.nodes, "odd", [x], outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)


def _chain(depth: int, activation: str, gain: float) -> onnx.ModelProto:
    net, channels = _Odd(1, 8, 16, 16), 8
    at = "x"
    for _ in range(depth):
        weight = net.normal(channels, channels, 3, 3, deviation=gain * (9 * channels) ** -0.5)
        at = net.add(activation, net.add("Conv", at, weight, pads=[1] * 4))
    return net.model(at)


def _residuals(depth: int) -> onnx.ModelProto:
    net, at = _Odd(1, 8, 16, 16), "x"
    for _ in range(depth):
        weight = net.normal(8, 8, 3, 3, deviation=72**-0.5)
        at = net.add("Add", at, net.add("Relu", net.add("Conv", at, weight, pads=[1] * 4)))
    return net.model(at)


def _long_sum(mean: float) -> onnx.ModelProto:
    net = _Odd(4, 1 << 18)
    shifted = net.add("Add", "x", net.weight(np.float32(mean)))
    return net.model(net.add("ReduceSum", shifted, net.weight(np.array([1]))))


def _long_product() -> onnx.ModelProto:
    net = _Odd(4, 16384)
    return net.model(net.add("MatMul", "x", net.normal(16384, 32)))


def _layer_norm(mean: float, deviation: float) -> onnx.ModelProto:
    net = _Odd(8, 256)
    narrow = net.add("Mul", "x", net.weight(np.float32(deviation)))
    moved = net.add("Add", narrow, net.weight(np.float32(mean)))
    return net.model(net.add("LayerNormalization", moved, net.normal(256, mean=1.0, deviation=0.1), net.normal(256)))


def _variance_in_one_pass() -> onnx.ModelProto:
    net = _Odd(8, 1024)
    moved = net.add("Add", "x", net.weight(np.float32(10)))
    square = net.add("ReduceMean", net.add("Mul", moved, moved), axes=[1])
    mean = net.add("ReduceMean", moved, axes=[1])
    return net.model(net.add("Sqrt", net.add("Sub", square, net.add("Mul", mean, mean))))


def _cancellation() -> onnx.ModelProto:
    net = _Odd(1, 256)
    one, other = (net.add("MatMul", "x", net.weight(w)) for w in _near(net, 256, 1e-3))
    return net.model(net.add("Sub", one, other))


def _near(net: _Odd, extent: int, by: float) -> tuple[Any, Any]:
    first = net.random.standard_normal((extent, extent)) * extent**-0.5
    second = first + by * net.random.standard_normal((extent, extent)) * extent**-0.5
    return first.astype(np.float32), second.astype(np.float32)


def _functions() -> onnx.ModelProto:
    net = _Odd(1, 4096)
    ends = [net.add(kind, "x") for kind in ("Tanh", "Sigmoid", "Erf", "Exp", "Sin", "Cos", "Softplus", "Elu", "Selu")]
    positive = net.add("Abs", "x")
    ends += [net.add(kind, positive) for kind in ("Sqrt", "Log", "Reciprocal")]
    return net.model(*ends, net.add("Pow", positive, net.weight(np.float32(2.5))))


def _sharp_softmax() -> onnx.ModelProto:
    net = _Odd(4, 1000)
    return net.model(net.add("Softmax", net.add("Mul", "x", net.weight(np.float32(20)))))


def _attention(depth: int) -> onnx.ModelProto:
    net, at = _Odd(1, 64, 64), "x"
    for _ in range(depth):
        q, k, v = (net.add("MatMul", at, net.normal(64, 64, deviation=0.25)) for _ in range(3))
        scores = net.add("MatMul", q, net.add("Transpose", k, perm=[0, 2, 1]))
        at = net.add(
            "LayerNormalization",
            net.add("Add", at, net.add("MatMul", net.add("Softmax", scores), v)),
            net.normal(64, mean=1.0, deviation=0.1),
            net.normal(64, deviation=0.1),
        )
    return net.model(at)


def _outliers() -> onnx.ModelProto:
    net = _Odd(1, 64, 256)
    wide = np.where(np.arange(256) == 7, 1000.0, 1.0).astype(np.float32)
    scaled = net.add("Mul", "x", net.weight(wide))
    return net.model(net.add("MatMul", scaled, net.normal(256, 256, deviation=1 / 16)))


def _resized(height: int, width: int, mode: str) -> onnx.ModelProto:
    """Coordinates of a large image are themselves rounded."""
    net = _Odd(1, 2, 65, 97)
    sizes = net.weight(np.array([1, 2, height, width]))
    return net.model(net.add("Resize", "x", "", "", sizes, mode=mode, coordinate_transformation_mode="half_pixel"))


def _instance_norms(depth: int) -> onnx.ModelProto:
    net, at = _Odd(1, 8, 32, 32), "x"
    for _ in range(depth):
        conv = net.add("Conv", at, net.normal(8, 8, 3, 3, deviation=72**-0.5), pads=[1] * 4)
        scale, shift = net.normal(8, mean=1.0, deviation=0.1), net.normal(8, deviation=0.1)
        at = net.add("LeakyRelu", net.add("InstanceNormalization", conv, scale, shift), alpha=0.1)
    return net.model(at)


def _rounded(kind: str) -> onnx.ModelProto:
    net = _Odd(8, 64)
    product = net.add("MatMul", "x", net.normal(64, 64, deviation=25.0))
    return net.model(net.add("MatMul", net.add(kind, product), net.normal(64, 16, deviation=1 / 8)))


def _quantised() -> onnx.ModelProto:
    net = _Odd(1, 8, 16, 16)
    scale, zero = net.weight(np.float32(0.05)), net.weight(np.uint8(128))
    conv = net.add("Conv", "x", net.normal(8, 8, 3, 3, deviation=72**-0.5), pads=[1] * 4)
    stored = net.add("DequantizeLinear", net.add("QuantizeLinear", conv, scale, zero), scale, zero)
    return net.model(net.add("Conv", stored, net.normal(8, 8, 3, 3, deviation=72**-0.5), pads=[1] * 4))


def _labels() -> onnx.ModelProto:
    net = _Odd(1, 8, 16, 16)
    scores = net.add("Conv", "x", net.normal(12, 8, 3, 3, deviation=72**-0.5), pads=[1] * 4)
    return net.model(net.add("ArgMax", scores, axis=1), scores)


def _scores_beside_boxes() -> onnx.ModelProto:
    net = _Odd(1, 8, 16, 16)
    boxes, scores = (net.add("Conv", "x", net.normal(8, 8, 3, 3, deviation=72**-0.5), pads=[1] * 4) for _ in range(2))
    large = net.add("Mul", boxes, net.weight(np.float32(300)))
    return net.model(net.add("Concat", large, net.add("Sigmoid", scores), axis=1))


def _masked_attention() -> onnx.ModelProto:
    net = _Odd(1, 32, 32)
    mask = net.weight(np.where(np.tri(32) > 0, 0, -np.inf).astype(np.float32))
    q, k, v = (net.add("MatMul", "x", net.normal(32, 32, deviation=0.25)) for _ in range(3))
    scores = net.add("Add", net.add("MatMul", q, net.add("Transpose", k, perm=[0, 2, 1])), mask)
    return net.model(net.add("MatMul", net.add("Softmax", scores), v))


def _sliced() -> onnx.ModelProto:
    net = _Odd(1, 8, 16, 16)
    bounds = (net.weight(np.array(numbers)) for numbers in ([1, 2], [15, 16], [2, 3]))
    inner = net.add("Slice", net.add("Relu", "x"), *bounds)
    return net.model(net.add("Conv", inner, net.normal(8, 8, 3, 3, deviation=72**-0.5)))


def _long_norm(kind: str) -> onnx.ModelProto:
    net = _Odd(1, 4, 512, 512)
    moved = net.add("Add", "x", net.weight(np.float32(4)))
    return net.model(net.add(kind, moved, net.normal(4), net.normal(4)))


def _long_convolution() -> onnx.ModelProto:
    net = _Odd(1, 16384, 4, 4)
    moved = net.add("Add", "x", net.weight(np.float32(4)))
    return net.model(net.add("Conv", moved, net.weight(np.full((8, 16384, 1, 1), 1 / 16384, np.float32))))


ODD: dict[str, Callable[[], onnx.ModelProto]] = {
    "relu_chain_100": lambda: _chain(100, "Relu", 2**0.5),
    "tanh_chain_100": lambda: _chain(100, "Tanh", 1.2),
    "tanh_chain_chaotic": lambda: _chain(60, "Tanh", 2.0),
    "residual_chain_50": lambda: _residuals(50),
    "long_sum": lambda: _long_sum(0.0),
    "long_sum_positive": lambda: _long_sum(4.0),
    "long_product": _long_product,
    "layer_norm": lambda: _layer_norm(0.0, 1.0),
    "layer_norm_small_variance": lambda: _layer_norm(0.0, 1e-2),
    "layer_norm_far_mean": lambda: _layer_norm(10.0, 1.0),
    "layer_norm_narrow": lambda: _layer_norm(10.0, 1e-2),
    "variance_in_one_pass": _variance_in_one_pass,
    "cancellation": _cancellation,
    "functions": _functions,
    "sharp_softmax": _sharp_softmax,
    "attention_12": lambda: _attention(12),
    "outliers": _outliers,
    "resized_linear": lambda: _resized(1013, 777, "linear"),
    "resized_cubic": lambda: _resized(1013, 777, "cubic"),
    "instance_norms_20": lambda: _instance_norms(20),
    "rounded_inside": lambda: _rounded("Round"),
    "floor_inside": lambda: _rounded("Floor"),
    "quantised_inside": _quantised,
    "labels": _labels,
    "scores_beside_boxes": _scores_beside_boxes,
    "masked_attention": _masked_attention,
    "sliced": _sliced,
    "long_norm": lambda: _long_norm("InstanceNormalization"),
    "long_convolution": _long_convolution,
}
"""Deep chains, long sums, small variances, differences of what is nearly the same, decisions, parts on small scales."""


def write(folder: Path) -> Path:
    """Write the odd networks and a suite file; returns the suite file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in ODD.items():
        onnx.save(make(), folder / f"{name}.onnx")
    suite = folder / "odd.toml"
    models = ", ".join(f'"{name}.onnx"' for name in ODD)
    suite.write_text(f'models = [{models}]\npaths = ["opencl", "texture", "clml"]\n', encoding="utf-8")
    return suite


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
