"""Operators with a sum inside, written as that sum: a pool as a mean, a norm with two means, a convolution in parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from harness.compile.models.outline import (
    NetworkView,
    Types,
    attribute_of,
    copy_of,
    is_onnx,
    operand,
    opset_of,
    static_shape,
    tensor_types,
)
from harness.compile.models.preparation.definitions import inline, write_reduction
from harness.compile.models.preparation.editing import NodeWriter, rewrite

Shape = Sequence[int]

FUNCTIONS = (
    *("LayerNormalization", "RMSNormalization", "Softmax", "LogSoftmax"),
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"),
)
"""Operators that ONNX defines as a function with a sum inside."""
ONLY_FUNCTIONS = ("MeanVarianceNormalization", "GroupNormalization")
"""The same, of which onnxruntime has only the function in double precision, or nothing."""
_POOLS = ("GlobalAveragePool", "GlobalLpPool")
_NORM = "InstanceNormalization"
SHORT = 512
"""Most products that a part of a convolution adds."""


def as_means(model: Any, types: Types, long: int) -> tuple[Any, Types]:
    """Return the network with global pools and norms of channels as the sums that they are, and its types."""
    model, types = as_functions(model, types, ONLY_FUNCTIONS, long)
    plain = copy_of(model)
    opset = opset_of(model)

    def write_sums(node: Any, _view: NetworkView, write: NodeWriter) -> bool:
        shape, power = static_shape(types.get(node.input[0])), attribute_of(node, "p", 2)
        if not shape or power > 2:
            return False
        reduced, axes = partial(write_reduction, write, opset), range(2, len(shape))
        if node.op_type != _NORM:
            kind = "ReduceMean" if node.op_type == "GlobalAveragePool" else f"ReduceL{power}"
            reduced(kind, node.input[0], axes, output=node.output[0])
            return True
        x, *of_channels = node.input
        centred = write.add("Sub", x, reduced("ReduceMean", x, axes))
        variance = reduced("ReduceMean", write.add("Mul", centred, centred), axes)
        least = write.constant(np.float32(attribute_of(node, "epsilon", 1e-5)))
        normal = write.add("Div", centred, write.add("Sqrt", write.add("Add", variance, least)))
        extents = write.integers(-1, *[1] * len(axes))
        scale, bias = (write.add("Reshape", numbers, extents) for numbers in of_channels)
        write.add("Add", write.add("Mul", normal, scale), bias, output=node.output[0])
        return True

    if not rewrite(plain, "mean", write_sums, *_POOLS, _NORM):
        return model, types
    del plain.graph.value_info[:]
    return plain, tensor_types(plain)


def as_functions(model: Any, types: Types, operators: Sequence[str], long: int) -> tuple[Any, Types]:
    """Return the network with these operators as the functions that ONNX defines them by, where a sum may be long."""

    def may_be_long(node: Any) -> bool:
        return is_onnx(node, *operators) and math.prod(static_shape(types.get(node.input[0])) or (0,)) >= long

    present = sorted({node.op_type for node in model.graph.node if may_be_long(node)})
    if not present or not inline(plain := copy_of(model), present):
        return model, types
    return plain, tensor_types(plain)


def convolution_terms(node: Any, weight: Shape) -> int:
    """Return how many products a convolution adds for one of its results."""
    if node.op_type == "Conv":
        return math.prod(weight[1:])
    strides: Sequence[int] = attribute_of(node, "strides", ())
    return math.prod((weight[0], *weight[2:])) // (_groups(node) * math.prod(strides))


def _groups(node: Any) -> int:
    return int(attribute_of(node, "group", 1))


def split_convolution(write: NodeWriter, node: Any, weight: Shape) -> None:
    """Write a convolution as the sum of several, in double precision; the bias is in the first."""
    parts = list[str]()
    channels = weight[1] if node.op_type == "Conv" else weight[0] // _groups(node)
    split = _by_channels(write, node, weight, channels) if channels > 1 else _by_kernel(write, node, weight)
    for number, operands in enumerate(split):
        partial_sum = write.add(node.op_type, *operands, *(node.input[2:] if number == 0 else ()))
        write.nodes[-1].attribute.extend(node.attribute)
        parts.append(write.add("Cast", partial_sum, to=TensorProto.DOUBLE))
    write.add("Cast", write.add("Sum", *parts), output=node.output[0], to=TensorProto.FLOAT)


def _by_channels(write: NodeWriter, node: Any, weight: Shape, channels: int) -> Iterator[tuple[str, str]]:
    """Yield some channels of each group with their weights, until there are no more."""
    x, whole = node.input[:2]
    each = max(1, channels * SHORT // convolution_terms(node, weight))
    for begin in range(0, channels, each):
        of_group = np.arange(begin, min(begin + each, channels))
        places = write.constant((channels * np.arange(_groups(node))[:, None] + of_group).ravel())
        of_weight, axis = (write.constant(of_group), 1) if node.op_type == "Conv" else (places, 0)
        yield write.add("Gather", x, places, axis=1), write.add("Gather", whole, of_weight, axis=axis)


def _by_kernel(write: NodeWriter, node: Any, weight: Shape) -> Iterator[tuple[str, str]]:
    """Yield the input with parts of a kernel of one channel, which is 0 elsewhere."""
    x, whole = node.input[:2]
    part_of = np.arange(math.prod(weight[2:])).reshape(weight[2:]) // SHORT
    for part in range(part_of.max() + 1):
        yield x, write.add("Mul", whole, write.constant((part_of == part).astype(np.float32)))


def window_terms(node: Any) -> int:
    """Return how many numbers a pool adds, if all its windows have as many; 0 if not."""
    window: Sequence[int] = attribute_of(node, "kernel_shape", ())
    edge = any(attribute_of(node, "pads", ())) or attribute_of(node, "ceil_mode", 0)
    edge = edge or attribute_of(node, "auto_pad", "NOTSET") != "NOTSET"
    return 0 if edge or any(each > 1 for each in attribute_of(node, "dilations", ())) else math.prod(window)


def halve_window(write: NodeWriter, node: Any) -> None:
    """Write an average over a window as that of the averages of its rows."""
    window = list(attribute_of(node, "kernel_shape", ()))
    ones = [1] * (len(window) - 1)
    strides = list(attribute_of(node, "strides", [*ones, 1]))
    rows = write.add("AveragePool", node.input[0], kernel_shape=[*ones, window[-1]], strides=[*ones, strides[-1]])
    across = {"kernel_shape": [*window[:-1], 1], "strides": [*strides[:-1], 1]}
    write.add("AveragePool", rows, output=node.output[0], **across)


def sum_axes(node: Any, rank: int, weights: Mapping[str, Any]) -> list[int] | None:
    """Return the axes of a sum, in order; None if the network computes them."""
    axes = attribute_of(node, "axes", None)
    if operand(node, 1):
        axes = numpy_helper.to_array(weights[node.input[1]]).ravel() if node.input[1] in weights else None
        return None if axes is None else sorted(int(axis) % rank for axis in axes)
    return sorted(int(axis) % rank for axis in axes) if axes else list(range(rank))


def add_in_turn(write: NodeWriter, node: Any, shape: Shape, axes: Sequence[int]) -> None:
    """Write a sum, or a mean, as the last of its partial sums."""
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    terms, keep = math.prod(shape[axis] for axis in axes), attribute_of(node, "keepdims", 1)
    result = [1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes]
    turned = write.add("Transpose", node.input[0], perm=[*axes, *rest])
    flat = write.add("Reshape", turned, write.integers(terms, *(shape[axis] for axis in rest)))
    partial_sums = write.add("CumSum", flat, write.constant(np.array(0)))
    total = write.add("Gather", partial_sums, write.integers(terms - 1))
    share = write.constant(np.float32(1 if node.op_type == "ReduceSum" else 1 / terms))
    write.add("Reshape", write.add("Mul", total, share), write.integers(*result), output=node.output[0])
