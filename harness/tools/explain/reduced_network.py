"""A small ONNX network with its inputs, and what changes of it keep it a network."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from device_runner.device import Array
from device_runner.store import key_of

Resize = Callable[[int, int], int]
"""Maps an axis and its size to its new size."""


@dataclass(frozen=True)
class SmallNetwork:
    """A network, as the bytes of its file, and what it is run on."""

    model: bytes
    inputs: Mapping[str, Array]

    @property
    def operators(self) -> int:
        """How many it has."""
        return len(self.proto().graph.node)

    @property
    def elements(self) -> int:
        """Numbers in inputs and weights."""
        weights: int = sum(math.prod(tensor.dims) for tensor in self.proto().graph.initializer)
        return weights + sum(array.size for array in self.inputs.values())

    @property
    def key(self) -> str:
        """The same for the same network on the same inputs."""
        arrays = {name: [str(array.dtype), array.shape, array.tobytes().hex()] for name, array in self.inputs.items()}
        return key_of({"model": self.model.hex(), "inputs": arrays})

    def proto(self) -> Any:
        """Return a copy that may be changed."""
        return onnx.load_model_from_string(self.model)


def rebuild(model: Any, inputs: Mapping[str, Array]) -> SmallNetwork | None:
    """Return a changed model as a network: with the shapes that follow from its inputs, and without what nobody reads.

    None if it is none any more.
    """
    graph = model.graph
    _replace(graph.node, _needed(graph))
    read = {name for node in graph.node for name in node.input}
    weights = [tensor for tensor in graph.initializer if tensor.name in read]
    inputs_left = [value for value in graph.input if value.name in read and value.name in inputs]
    arrays = {value.name: inputs[value.name] for value in inputs_left}
    if not inputs_left or not graph.node:
        return None
    _replace(graph.initializer, weights)
    _replace(
        graph.input,
        [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in arrays.items()
        ],
    )
    del graph.value_info[:]
    for value in graph.output:
        value.type.tensor_type.ClearField("shape")
    try:
        typed = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
        _replace(graph.output, list(typed.graph.output))
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        return None
    if any(dim.dim_value <= 0 for value in graph.output for dim in value.type.tensor_type.shape.dim):
        return None
    return SmallNetwork(model.SerializeToString(deterministic=True), arrays)


def cut(array: Array, resize: Resize) -> Array:
    """Return the corner of an array that is left when its axes are resized."""
    corner = tuple(slice(resize(axis, size)) for axis, size in enumerate(array.shape))
    return np.ascontiguousarray(array[corner]).reshape([resize(axis, size) for axis, size in enumerate(array.shape)])


def _needed(graph: Any) -> list[Any]:
    """Return the nodes that lead to an output."""
    tensors, needed = {value.name for value in graph.output}, []
    for node in reversed(graph.node):
        if tensors & {*node.output}:
            tensors |= {*node.input}
            needed.append(node)
    return needed[::-1]


def _replace(repeated: Any, values: list[Any]) -> None:
    del repeated[:]
    repeated.extend(values)
