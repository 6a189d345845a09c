"""Operators with a sum inside, written as that sum: a pool as a mean, a norm with two means, a convolution in parts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.compile.models.outline import attribute_of, copy_of, operand, static_shape, tensor_types
from harness.compile.models.preparation.definitions import inline
from harness.compile.models.preparation.editing import is_onnx
from harness.compile.models.preparation.opset import opset_of

if TYPE_CHECKING:
    Types = Mapping[str, Any]
    Shape = Sequence[int]

FUNCTIONS = (
    *("LayerNormalization", "RMSNormalization", "Softmax", "LogSoftmax"),
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"),
)
"""Operators that ONNX defines as a function with a sum inside."""
ONLY_FUNCTION = "MeanVarianceNormalization"
"""The same, of which onnxruntime has only the function in double precision."""
_POOLS = ("GlobalAveragePool", "GlobalLpPool")
_NORMS = ("InstanceNormalization", "GroupNormalization")
SHORT = 512
"""Most products that a part of a convolution adds."""


class _SumWriter:
    """Writes what stands in place of one operator."""

    def __init__(self, node: Any) -> None:
        self.name = str(node.output[0])
        self.nodes: list[Any] = []

    def step(self, operator: str, inputs: Sequence[str], what: str, **attributes: Any) -> str:
        """Write an operator; returns the name of its result."""
        from onnx import helper

        self.nodes.append(helper.make_node(operator, inputs, [f"{self.name}/{what}"], **attributes))
        return f"{self.name}/{what}"

    def constant(self, what: str, array: Any) -> str:
        """Write a constant; returns its name."""
        from onnx import numpy_helper

        return self.step("Constant", [], what, value=numpy_helper.from_array(array))

    def reshape(self, tensor: str, what: str, *extents: int) -> str:
        """Write a tensor in another shape; returns its name."""
        import numpy as np

        return self.step("Reshape", [tensor, self.constant(f"{what}/extents", np.array(extents, np.int64))], what)

    def reduce(self, kind: str, tensor: str, what: str, axes: Sequence[int], opset: int) -> str:
        """Write a sum along some axes, which are an input from operator set 18 on; returns the name of its result."""
        if opset < 18:
            return self.step(kind, [tensor], what, axes=axes)
        return self.step(kind, [tensor, self.step("Constant", [], f"{what}/axes", value_ints=axes)], what)

    def end(self, tensor: str, operator: str = "Identity", **attributes: Any) -> list[Any]:
        """Return what was written, with this tensor as the result."""
        from onnx import helper

        return [*self.nodes, helper.make_node(operator, [tensor], [self.name], **attributes)]


def as_means(model: Any, types: Types, long: int) -> tuple[Any, Types]:
    """Return the network with global pools and norms of channels as the sums that they are, and its types."""
    model, types = as_functions(model, types, (ONLY_FUNCTION,), long)
    if not any(is_onnx(node, *_POOLS, *_NORMS) for node in model.graph.node):
        return model, types
    plain, opset = copy_of(model), opset_of(model)
    del plain.graph.node[:], plain.graph.value_info[:]
    for node in model.graph.node:
        shape = static_shape(types.get(node.input[0])) if is_onnx(node, *_POOLS, *_NORMS) else None
        plain.graph.node.extend(_as_sums(node, shape, types, opset) if shape else [node])
    return plain, tensor_types(plain)


def _as_sums(node: Any, shape: Shape, types: Types, opset: int) -> list[Any]:
    if is_onnx(node, *_NORMS):
        scale = static_shape(types.get(node.input[1]))
        return _norm_of_groups(node, shape, scale[0], opset) if scale else [node]
    power = attribute_of(node, "p", 2)
    if power > 2:
        return [node]
    kind = "ReduceMean" if node.op_type == "GlobalAveragePool" else f"ReduceL{power}"
    writer = _SumWriter(node)
    return writer.end(writer.reduce(kind, node.input[0], "reduced", range(2, len(shape)), opset))


def _norm_of_groups(node: Any, shape: Shape, scales: int, opset: int) -> list[Any]:
    """Return what a norm of groups of channels does, or one of instances, with its two means."""
    x, scale, bias = node.input
    writer, groups = _SumWriter(node), attribute_of(node, "num_groups", shape[1])
    grouped = writer.reshape(x, "grouped", shape[0], groups, -1)
    centred = writer.step("Sub", [grouped, writer.reduce("ReduceMean", grouped, "mean", [2], opset)], "centred")
    square = writer.step("Mul", [centred, centred], "square")
    variance = writer.reduce("ReduceMean", square, "variance", [2], opset)
    least = writer.step("Constant", [], "least", value_float=attribute_of(node, "epsilon", 1e-5))
    deviation = writer.step("Sqrt", [writer.step("Add", [variance, least], "positive")], "deviation")
    by_scale = writer.reshape(writer.step("Div", [centred, deviation], "normal"), "by_scale", shape[0], scales, -1)
    scaled = writer.step("Mul", [by_scale, writer.reshape(scale, "scale", scales, 1)], "scaled")
    moved = writer.step("Add", [scaled, writer.reshape(bias, "bias", scales, 1)], "moved")
    return writer.end(writer.reshape(moved, "normalised", *shape))


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


def split_convolution(node: Any, weight: Shape) -> list[Any]:
    """Return a convolution as the sum of several, in double precision; the bias is in the first."""
    from onnx import TensorProto, helper

    writer, parts = _SumWriter(node), list[str]()
    channels = weight[1] if node.op_type == "Conv" else weight[0] // _groups(node)
    split = _by_channels(writer, node, weight, channels) if channels > 1 else _by_kernel(writer, node, weight)
    for number, (x, part) in enumerate(split):
        bias = node.input[2:] if number == 0 else ()
        partial = helper.make_node(node.op_type, [x, part, *bias], [f"{writer.name}/partial_{number}"])
        partial.attribute.extend(node.attribute)
        writer.nodes.append(partial)
        parts.append(writer.step("Cast", partial.output, f"wide_{number}", to=TensorProto.DOUBLE))
    return writer.end(writer.step("Sum", parts, "sum"), "Cast", to=TensorProto.FLOAT)


def _by_channels(writer: _SumWriter, node: Any, weight: Shape, channels: int) -> Iterator[tuple[str, str]]:
    """Yield some channels of each group with their weights, until there are no more."""
    import numpy as np

    x, whole = node.input[:2]
    each = max(1, channels * SHORT // convolution_terms(node, weight))
    for begin in range(0, channels, each):
        of_group = np.arange(begin, min(begin + each, channels))
        chosen = (channels * np.arange(_groups(node))[:, None] + of_group).ravel()
        places = writer.constant(f"channels_{begin}", chosen)
        of_weight = writer.constant(f"of_weight_{begin}", of_group) if node.op_type == "Conv" else places
        yield (
            writer.step("Gather", [x, places], f"x_{begin}", axis=1),
            writer.step("Gather", [whole, of_weight], f"weight_{begin}", axis=1 if node.op_type == "Conv" else 0),
        )


def _by_kernel(writer: _SumWriter, node: Any, weight: Shape) -> Iterator[tuple[str, str]]:
    """Yield the input with parts of a kernel of one channel, which is 0 elsewhere."""
    import numpy as np

    x, whole = node.input[:2]
    size = math.prod(weight[2:])
    part_of = np.arange(size).reshape(weight[2:]) // SHORT
    for part in range(part_of.max() + 1):
        here = writer.constant(f"here_{part}", (part_of == part).astype(np.float32))
        yield x, writer.step("Mul", [whole, here], f"weight_{part}")


def window_terms(node: Any) -> int:
    """Return how many numbers a pool adds, if all its windows have as many; 0 if not."""
    window: Sequence[int] = attribute_of(node, "kernel_shape", ())
    edge = any(attribute_of(node, "pads", ())) or attribute_of(node, "ceil_mode", 0)
    edge = edge or attribute_of(node, "auto_pad", "NOTSET") != "NOTSET"
    return 0 if edge or any(each > 1 for each in attribute_of(node, "dilations", ())) else math.prod(window)


def halve_window(node: Any) -> list[Any]:
    """Return an average over a window as that of the averages of its rows."""
    writer, window = _SumWriter(node), list(attribute_of(node, "kernel_shape", ()))
    ones = [1] * (len(window) - 1)
    strides = list(attribute_of(node, "strides", [*ones, 1]))
    along = {"kernel_shape": [*ones, window[-1]], "strides": [*ones, strides[-1]]}
    across = {"kernel_shape": [*window[:-1], 1], "strides": [*strides[:-1], 1]}
    return writer.end(writer.step("AveragePool", [node.input[0]], "rows", **along), "AveragePool", **across)


def sum_axes(node: Any, rank: int, weights: Mapping[str, Any]) -> list[int] | None:
    """Return the axes of a sum, in order; None if the network computes them."""
    from onnx import numpy_helper

    axes = attribute_of(node, "axes", None)
    if operand(node, 1):
        axes = numpy_helper.to_array(weights[node.input[1]]).ravel() if node.input[1] in weights else None
        return None if axes is None else sorted(int(axis) % rank for axis in axes)
    return sorted(int(axis) % rank for axis in axes) if axes else list(range(rank))


def add_in_turn(node: Any, shape: Shape, axes: Sequence[int]) -> list[Any]:
    """Return what computes a sum, or a mean, as the last of its partial sums."""
    import numpy as np

    writer, rest = _SumWriter(node), [axis for axis in range(len(shape)) if axis not in axes]
    terms, keep = math.prod(shape[axis] for axis in axes), attribute_of(node, "keepdims", 1)
    result = [1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes]
    turned = writer.step("Transpose", [node.input[0]], "turned", perm=[*axes, *rest])
    flat = writer.reshape(turned, "flat", terms, *(shape[axis] for axis in rest))
    partial = writer.step("CumSum", [flat, writer.constant("first", np.int64(0))], "partial")
    total = writer.step("Gather", [partial, writer.constant("last", np.array([terms - 1]))], "total")
    share = 1.0 if node.op_type == "ReduceSum" else 1.0 / terms
    scaled = writer.step("Mul", [total, writer.constant("share", np.float32(share))], "scaled")
    return writer.end(writer.reshape(scaled, "result", *result))
