"""The same network with its sums in another order, or in double precision: how far a long sum may be off.

A judge rounds, too. The mean of 262,144 numbers, added one by one in single precision, is off by 2e-5 of itself.
Where the judge's answer differs from one with double sums, the judge is off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.compile.models.outline import attribute_of, constants, static_shape
from harness.compile.oracle.operands import data_operands

if TYPE_CHECKING:
    Types = Mapping[str, Any]

LONG = 4096
"""Number of terms from which on the order of a sum is tried: a shorter one is off by less than any tolerance."""
_SUMS = ("ReduceSum", "ReduceMean", "GlobalAveragePool")
WIDE = (
    *("ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"),
    *("CumSum", "MatMul", "Gemm", "Einsum", "Softmax", "LogSoftmax", "LayerNormalization", "ReduceProd", "Sum"),
)
"""Operators that onnxruntime computes in double precision, too. Convolutions are not among them."""


def with_wide_sums(model: Any, types: Types) -> Any:
    """Return the network with its sums in double precision."""
    from onnx import TensorProto, helper

    def widen(node: Any) -> list[Any]:
        if node.op_type not in WIDE or len(node.output) > 1:
            return [node]
        wide, before = helper.make_node(node.op_type, node.input, [f"{node.output[0]}/wide"]), []
        wide.attribute.extend(node.attribute)
        for place in data_operands(node):
            if (name := node.input[place]) and _is_float(types, name):
                wide.input[place] = f"{node.output[0]}/{place}/wide"
                before.append(helper.make_node("Cast", [name], [wide.input[place]], to=TensorProto.DOUBLE))
        after = helper.make_node("Cast", wide.output, node.output, to=TensorProto.FLOAT)
        return [*before, wide, after] if before and _is_float(types, node.output[0]) else [node]

    return _rewritten(model, lambda node: [new for one in _as_mean(node, types, model) for new in widen(one)])


def with_serial_sums(model: Any, types: Types) -> Any | None:
    """Return the network with each long sum added term by term; None if it has none."""
    known, long = constants(model), False

    def serial(node: Any) -> list[Any]:
        nonlocal long
        shape = static_shape(types.get(node.input[0])) if node.op_type in _SUMS else None
        if not shape or not _is_float(types, node.input[0]):
            return [node]
        axes = _axes(node, len(shape), known)
        terms = math.prod(shape[axis] for axis in axes or ())
        if axes is None or terms < LONG:
            return [node]
        long = True
        return _added_in_turn(node, shape, axes, terms)

    made = _rewritten(model, serial)
    return made if long else None


def _added_in_turn(node: Any, shape: Sequence[int], axes: Sequence[int], terms: int) -> list[Any]:
    """Return what computes a sum, or a mean, as the last of its partial sums."""
    from onnx import TensorProto, helper

    name, rest = node.output[0], [axis for axis in range(len(shape)) if axis not in axes]
    keep = node.op_type == "GlobalAveragePool" or attribute_of(node, "keepdims", 1)
    result = [1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes]
    made: list[Any] = []

    def constant(what: str, numbers: Sequence[float], kind: int = TensorProto.INT64) -> str:
        tensor = helper.make_tensor(what, kind, [len(numbers)], numbers)
        made.append(helper.make_node("Constant", [], [f"{name}/{what}"], value=tensor))
        return f"{name}/{what}"

    def step(operator: str, inputs: Sequence[str], what: str, **attributes: Any) -> str:
        made.append(helper.make_node(operator, inputs, [what], **attributes))
        return what

    turned = step("Transpose", [node.input[0]], f"{name}/turned", perm=[*axes, *rest])
    flat = step("Reshape", [turned, constant("flat", [terms, *(shape[axis] for axis in rest)])], f"{name}/flat_sum")
    partial = step("CumSum", [flat, constant("first", [0])], f"{name}/partial")
    last = step("Gather", [partial, constant("last", [terms - 1])], f"{name}/total")
    share = 1.0 if node.op_type == "ReduceSum" else 1.0 / terms
    scaled = step("Mul", [last, constant("share", [share], TensorProto.FLOAT)], f"{name}/scaled")
    step("Reshape", [scaled, constant("shape", result)], name)
    return made


def _as_mean(node: Any, types: Types, model: Any) -> list[Any]:
    """Return a global pool as the mean that it is, which there is in double precision."""
    from onnx import helper

    from harness.compile.models.preparation.opset import opset_of

    shape = static_shape(types.get(node.input[0])) if node.op_type == "GlobalAveragePool" else None
    if not shape:
        return [node]
    axes, name = list(range(2, len(shape))), f"{node.output[0]}/axes"
    if opset_of(model) < 18:
        return [helper.make_node("ReduceMean", node.input, node.output, axes=axes)]
    constant = helper.make_node("Constant", [], [name], value_ints=axes)
    return [constant, helper.make_node("ReduceMean", [node.input[0], name], node.output)]


def _axes(node: Any, rank: int, known: Mapping[str, Any]) -> list[int] | None:
    """Return the axes of a sum, in order; None if the network computes them."""
    from onnx import numpy_helper

    if node.op_type == "GlobalAveragePool":
        return list(range(2, rank))
    axes = attribute_of(node, "axes", None)
    if len(node.input) > 1 and node.input[1]:
        axes = numpy_helper.to_array(known[node.input[1]]).ravel() if node.input[1] in known else None
        return None if axes is None else sorted(int(axis) % rank for axis in axes)
    return sorted(int(axis) % rank for axis in axes) if axes else list(range(rank))


def _is_float(types: Types, name: str) -> bool:
    from onnx import TensorProto

    return name in types and types[name].elem_type == TensorProto.FLOAT


def _rewritten(model: Any, replace: Any) -> Any:
    """Return the network with each operator replaced by what computes it otherwise."""
    import onnx

    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    nodes = [new for node in model.graph.node for new in replace(node)]
    del whole.graph.node[:], whole.graph.value_info[:]
    whole.graph.node.extend(nodes)
    return whole
