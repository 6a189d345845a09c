"""A small builder of convolutional networks as ONNX graphs, with weights from a generator seeded by the model's name.

Weights are He-normal (He et al., 2015, arXiv:1502.01852). Batch-norm statistics are varied but mild, as in a trained
network, so that a compiler which drops, folds or swaps one of them gives a visibly wrong answer while activations
stay around 1.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Weights = npt.NDArray[np.float32]

OPSET = 13
IR_VERSION = 8
"""Old enough for every onnx and TVM release that we support."""


@dataclass(frozen=True)
class Value:
    """A tensor of the graph: its name and how many channels it has."""

    name: str
    channels: int


class GraphBuilder:
    """Adds one layer at a time; every layer takes and returns a `Value`."""

    def __init__(self, name: str, input_shape: tuple[int, int, int, int]) -> None:
        self.name = name
        self.input = Value("input", input_shape[1])
        self._input_shape = input_shape
        self._rng = np.random.default_rng(list(hashlib.sha256(name.encode()).digest()))
        self._nodes: list[Any] = []
        self._weights: list[Any] = []

    def conv(
        self, x: Value, channels: int, kernel: int, *, stride: int = 1, pad: int = 0, groups: int = 1, bias: bool = True
    ) -> Value:
        """2D convolution with square kernel, the same padding on every side."""
        fan_in = x.channels // groups * kernel * kernel
        inputs = [
            x.name,
            self._weight("weight", self._he_normal((channels, x.channels // groups, kernel, kernel), fan_in)),
        ]
        if bias:
            inputs.append(self._weight("bias", self._normal(channels, 0.0, 0.1)))
        attributes = {"strides": [stride] * 2, "pads": [pad] * 4, "kernel_shape": [kernel] * 2, "group": groups}
        return self._add("Conv", inputs, channels, **attributes)

    def batch_norm(self, x: Value, *, gain: float = 1.0) -> Value:
        """Batch normalisation for inference; `gain` scales gamma (small at the end of a residual branch)."""
        gamma = self._uniform(x.channels, 0.7, 1.3) * np.float32(gain)
        beta = self._normal(x.channels, 0.0, 0.2)
        mean = self._normal(x.channels, 0.0, 0.2)
        variance = self._uniform(x.channels, 0.6, 1.6)
        names = ("gamma", "beta", "mean", "variance")
        weights = [self._weight(n, v) for n, v in zip(names, (gamma, beta, mean, variance), strict=True)]
        return self._add("BatchNormalization", [x.name, *weights], x.channels, epsilon=1e-5)

    def relu(self, x: Value) -> Value:
        """Rectifier."""
        return self._add("Relu", [x.name], x.channels)

    def conv_bn_relu(
        self, x: Value, channels: int, kernel: int, *, stride: int = 1, pad: int = 0, groups: int = 1
    ) -> Value:
        """The block that most networks are made of: convolution without bias, batch norm, rectifier."""
        conv = self.conv(x, channels, kernel, stride=stride, pad=pad, groups=groups, bias=False)
        return self.relu(self.batch_norm(conv))

    def max_pool(self, x: Value, kernel: int, *, stride: int, pad: int = 0) -> Value:
        """Maximum over a square window."""
        return self._add(
            "MaxPool", [x.name], x.channels, kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[pad] * 4
        )

    def average_pool(self, x: Value, kernel: int, *, stride: int) -> Value:
        """Average over a square window, without padding."""
        return self._add("AveragePool", [x.name], x.channels, kernel_shape=[kernel] * 2, strides=[stride] * 2)

    def global_average_pool(self, x: Value) -> Value:
        """Average over all positions."""
        return self._add("GlobalAveragePool", [x.name], x.channels)

    def add(self, x: Value, y: Value) -> Value:
        """Sum of two tensors of one shape."""
        return self._add("Add", [x.name, y.name], x.channels)

    def concat(self, x: Value, y: Value) -> Value:
        """Channels of `x`, then channels of `y`."""
        return self._add("Concat", [x.name, y.name], x.channels + y.channels, axis=1)

    def flatten(self, x: Value) -> Value:
        """`(n, c, 1, 1)` to `(n, c)`."""
        return self._add("Flatten", [x.name], x.channels, axis=1)

    def dense(self, x: Value, channels: int) -> Value:
        """Fully connected layer on a flattened tensor."""
        weight = self._weight("weight", self._he_normal((channels, x.channels), x.channels))
        bias = self._weight("bias", self._normal(channels, 0.0, 0.1))
        return self._add("Gemm", [x.name, weight, bias], channels, transB=1)

    def finish(self, output: Value, shape: tuple[int, ...]) -> bytes:
        """The model as bytes: the same for the same calls."""
        from onnx import TensorProto, helper

        graph = helper.make_graph(
            self._nodes,
            self.name,
            [helper.make_tensor_value_info(self.input.name, TensorProto.FLOAT, self._input_shape)],
            [helper.make_tensor_value_info(output.name, TensorProto.FLOAT, shape)],
            self._weights,
        )
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="adreno-bench"
        )
        return bytes(model.SerializeToString(deterministic=True))

    def _add(self, kind: str, inputs: list[str], channels: int, **attributes: Any) -> Value:
        from onnx import helper

        name = f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return Value(name, channels)

    def _weight(self, role: str, values: Weights) -> str:
        from onnx import numpy_helper

        name = f"{role}_{len(self._weights)}"
        self._weights.append(numpy_helper.from_array(values, name))
        return name

    def _he_normal(self, shape: tuple[int, ...], fan_in: int) -> Weights:
        return self._normal(shape, 0.0, (2.0 / fan_in) ** 0.5)

    def _normal(self, shape: int | tuple[int, ...], mean: float, deviation: float) -> Weights:
        return (mean + deviation * self._rng.standard_normal(shape, dtype=np.float32)).astype(np.float32)

    def _uniform(self, count: int, low: float, high: float) -> Weights:
        return (low + (high - low) * self._rng.random(count, dtype=np.float32)).astype(np.float32)
