"""The same network with its sums in another order, or in double precision: how far a long sum may be off.

A judge rounds, too. The mean of 262,144 numbers, added one by one in single precision, is off by 2e-5 of itself.
Where the judge's answer differs from one with double sums, the judge is off. What onnxruntime has in single precision
only is written as sums that it has in double, or as several shorter ones (`harness.compile.oracle.sum_forms`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from onnx import TensorProto

from harness.compile.models.outline import Types, all_graphs, constants, copy_of, static_shape
from harness.compile.models.preparation.editing import NodeWriter, is_onnx, replace_nodes
from harness.compile.oracle.operands import data_operands
from harness.compile.oracle.sum_forms import (
    FUNCTIONS,
    add_in_turn,
    as_functions,
    as_means,
    convolution_terms,
    halve_window,
    split_convolution,
    sum_axes,
    window_terms,
)

LONG = 4096
"""Number of terms from which on the order of a sum is tried: a shorter one is off by less than any tolerance."""
WIDE = (
    *("ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"),
    *("CumSum", "MatMul", "Gemm", "Einsum", "ReduceProd", "Sum", "ScatterElements", "ScatterND", "Attention"),
    *("Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "LpNormalization", "DFT", "STFT"),
)
"""Operators with a sum, which onnxruntime also has in double precision. Its STFT over 400 numbers is off by 4e-5 of the
largest result in single precision, and one over 512 by 6e-7."""
_LAST = ("MatMul", "Einsum", "CumSum", "Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization")
_MANY = ("ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "GlobalAveragePool")
TERMS: Mapping[str, Callable[[Any, Any, Any], int]] = {
    **dict.fromkeys(("Conv", "ConvTranspose"), lambda x, weight, y: math.prod(weight) // y[1]),
    "Gemm": lambda x, weight, y: math.prod(weight) // y[-1],
    **dict.fromkeys(_LAST, lambda x, weight, y: x[-1]),
    **dict.fromkeys(_MANY, lambda x, weight, y: math.prod(x) // math.prod(y)),
    **dict.fromkeys(("InstanceNormalization", "GroupNormalization"), lambda x, weight, y: math.prod(x[2:])),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), lambda x, weight, y: weight[2] + weight[1] // 3),
}
"""How many numbers each sum of an operator adds, by the shapes of its first two operands and of its result."""


def with_wide_sums(model: Any, types: Types) -> Any:
    """Return the network with its sums in double precision, or split."""
    model, types = as_means(model, types, LONG)
    shapes = {name: static_shape(kind) for name, kind in types.items()}

    def widen(write: NodeWriter, node: Any) -> list[Any] | None:
        if not _is_float(types, node.output[0]):
            return None
        if is_onnx(node, *WIDE):
            return _in_double(write, node, types)
        if is_onnx(node, "AveragePool") and window_terms(node) >= LONG:
            return halve_window(write, node)
        if is_onnx(node, "Conv", "ConvTranspose") and (weight := shapes.get(node.input[1])):
            return split_convolution(write, node, weight) if convolution_terms(node, weight) >= LONG else None
        return None

    return _rewritten(model, widen) or model


def with_serial_sums(model: Any, types: Types) -> Any | None:
    """Return the network with each long sum added term by term; None if it has none."""
    model, types = as_means(model, types, LONG)
    model, types = as_functions(model, types, FUNCTIONS, LONG)
    weights = constants(model)

    def serial(write: NodeWriter, node: Any) -> list[Any] | None:
        shape = static_shape(types.get(node.input[0])) if is_onnx(node, "ReduceSum", "ReduceMean") else None
        if not shape or not _is_float(types, node.input[0]):
            return None
        axes = sum_axes(node, len(shape), weights)
        if axes is None or math.prod(shape[axis] for axis in axes) < LONG:
            return None
        return add_in_turn(write, node, shape, axes)

    return _rewritten(model, serial)


def _in_double(write: NodeWriter, node: Any, types: Types) -> list[Any] | None:
    """Return an operator of one result in double precision, between numbers in single precision."""
    if any(node.output[1:]):
        return None
    operands = list(node.input)
    for place in data_operands(node):
        if _is_float(types, operands[place]):
            operands[place] = write.add("Cast", operands[place], to=TensorProto.DOUBLE)
    if not write.nodes:
        return None
    wide = write.add(node.op_type, *operands)
    write.nodes[-1].attribute.extend(node.attribute)
    write.add("Cast", wide, output=node.output[0], to=TensorProto.FLOAT)
    return write.take()


def _is_float(types: Types, name: str) -> bool:
    return name in types and types[name].elem_type == TensorProto.FLOAT


def _rewritten(model: Any, replacement: Callable[[NodeWriter, Any], Sequence[Any] | None]) -> Any | None:
    """Return the network with what computes operators otherwise, in branches and bodies, too; None if none is."""
    whole = copy_of(model)
    replace = partial(replacement, NodeWriter(whole, "sum"))
    gone = [node for graph in all_graphs(whole.graph) for node in replace_nodes(graph, replace)]
    for graph in all_graphs(whole.graph):
        del graph.value_info[:]
    return whole if gone else None
