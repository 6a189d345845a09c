"""A builder of networks as ONNX graphs, with weights from a generator seeded by the network's name.

Weights are drawn when the file is written and not before, so that a network of any size is counted in milliseconds.
`harness.tools.zoo.graph_layers` has the layers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Weights = npt.NDArray[np.float32]
Fill = Callable[[np.random.Generator], Weights]

IR_VERSION = 8
"""Old enough for every onnx and TVM release that we support."""


@dataclass(frozen=True)
class Value:
    """A tensor of the graph: its name and how many channels (of an image) or features (of a sequence) it has."""

    name: str
    channels: int


@dataclass(frozen=True)
class Weight:
    """A tensor that is drawn when the file is written."""

    name: str
    shape: tuple[int, ...]
    fill: Fill


@dataclass(frozen=True)
class Network:
    """A finished network: its graph, and its weights still to be drawn."""

    name: str
    graph: Any
    weights: tuple[Weight, ...]
    opset: int

    def to_bytes(self) -> bytes:
        """Return the model as an ONNX file: the same bytes every time."""
        rng = np.random.default_rng(list(hashlib.sha256(self.name.encode()).digest()))
        model = self._model([numpy_helper.from_array(weight.fill(rng), weight.name) for weight in self.weights])
        return bytes(model.SerializeToString(deterministic=True))

    def outline(self) -> Any:
        """Return the model with weights that have a shape and no data, for counting."""
        return self._model(
            [TensorProto(name=weight.name, dims=weight.shape, data_type=TensorProto.FLOAT) for weight in self.weights]
        )

    def _model(self, weights: Sequence[Any]) -> Any:
        graph = onnx.GraphProto()
        graph.CopyFrom(self.graph)
        constants = list(graph.initializer)
        del graph.initializer[:]
        graph.initializer.extend([*weights, *constants])
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=IR_VERSION,
            producer_name="adreno-bench",
        )


class GraphBuilder:
    """Adds one operator at a time; every layer takes and returns a `Value`."""

    OPSET = 13

    def __init__(self, name: str) -> None:
        self.name = name
        self._inputs: list[Any] = []
        self._nodes: list[Any] = []
        self._weights: list[Weight] = []
        self._constants: list[Any] = []

    def add_input(self, name: str, shape: Sequence[int], *, channels: int, integers: bool = False) -> Value:
        """Return an input of the network, of real numbers or of integers of 64 bits."""
        kind = TensorProto.INT64 if integers else TensorProto.FLOAT
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return Value(name, channels)

    def add(self, x: Value, y: Value) -> Value:
        """Sum of two tensors."""
        return self._add("Add", [x.name, y.name], x.channels)

    def multiply(self, x: Value, y: Value) -> Value:
        """Product of two tensors, element by element."""
        return self._add("Mul", [x.name, y.name], x.channels)

    def silu(self, x: Value) -> Value:
        """`x * sigmoid(x)`."""
        return self.multiply(x, self._add("Sigmoid", [x.name], x.channels))

    def reshape(self, x: Value, shape: tuple[int, ...], *, axis: int = -1) -> Value:
        """Reshape `x`; the extent of `shape` at `axis` is the features or channels."""
        return self._add("Reshape", [x.name, self._constant(np.array(shape))], shape[axis])

    def concat(self, *values: Value, axis: int = 1) -> Value:
        """One tensor after the other; by default their channels."""
        channels = sum(value.channels for value in values) if axis == 1 else values[0].channels
        return self._add("Concat", [value.name for value in values], channels, axis=axis)

    def finish(self, *outputs: tuple[Value, tuple[int, ...]]) -> Network:
        """Return the network with these outputs and their shapes."""
        ends = [helper.make_tensor_value_info(value.name, TensorProto.FLOAT, shape) for value, shape in outputs]
        graph = helper.make_graph(self._nodes, self.name, self._inputs, ends, self._constants)
        return Network(self.name, graph, tuple(self._weights), self.OPSET)

    def _add(self, kind: str, inputs: list[str], channels: int, **attributes: Any) -> Value:
        name = f"{kind.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return Value(name, channels)

    def _constant(self, values: Any) -> str:
        """Return a tensor of the network's structure, which is no weight."""
        name = f"constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def _weight(self, role: str, shape: tuple[int, ...], fill: Fill) -> str:
        name = f"{role}_{len(self._weights)}"
        self._weights.append(Weight(name, shape, fill))
        return name

    def _he_normal(self, role: str, shape: tuple[int, ...], fan_in: int) -> str:
        """He et al., 2015, arXiv:1502.01852."""
        return self._normal(role, shape, 0.0, (2.0 / fan_in) ** 0.5)

    def _normal(self, role: str, shape: tuple[int, ...], mean: float, deviation: float) -> str:
        def fill(rng: np.random.Generator) -> Weights:
            return (mean + deviation * rng.standard_normal(shape, dtype=np.float32)).astype(np.float32)

        return self._weight(role, shape, fill)

    def _uniform(self, role: str, count: int, low: float, high: float, gain: float = 1.0) -> str:
        def fill(rng: np.random.Generator) -> Weights:
            drawn: Weights = (low + (high - low) * rng.random(count, dtype=np.float32)).astype(np.float32)
            drawn *= np.float32(gain)
            return drawn

        return self._weight(role, (count,), fill)
