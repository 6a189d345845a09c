"""The same network with its sums in another order, or in double precision: how far a long sum may be off.

A judge rounds, too. The mean of 262,144 numbers, added one by one in single precision, is off by 2e-5 of itself.
Where the judge's answer differs from one with double sums, the judge is off. What onnxruntime has in single precision
only is written as sums that it has in double, or as several shorter ones (`harness.compile.oracle.sum_forms`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from onnx import TensorProto

from harness.compile.models.outline import NetworkView, Types, all_graphs, constants, copy_of, is_onnx, static_shape
from harness.compile.models.preparation.editing import NodeWriter, WriteOthers, rewrite
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

    def widen(node: Any, _view: NetworkView, write: NodeWriter) -> bool:
        if not _is_float(types, node.output[0]):
            return False
        weight = shapes.get(node.input[1]) if is_onnx(node, "Conv", "ConvTranspose") else None
        if is_onnx(node, *WIDE):
            _write_in_double(write, node, types)
        elif is_onnx(node, "AveragePool") and window_terms(node) >= LONG:
            halve_window(write, node)
        elif weight and convolution_terms(node, weight) >= LONG:
            split_convolution(write, node, weight)
        return bool(write.nodes)

    return _rewritten(model, widen) or model


def with_serial_sums(model: Any, types: Types) -> Any | None:
    """Return the network with each long sum added term by term; None if it has none."""
    model, types = as_means(model, types, LONG)
    model, types = as_functions(model, types, FUNCTIONS, LONG)
    weights = constants(model)

    def serial(node: Any, _view: NetworkView, write: NodeWriter) -> bool:
        shape = static_shape(types.get(node.input[0])) if is_onnx(node, "ReduceSum", "ReduceMean") else None
        if not shape or not _is_float(types, node.input[0]):
            return False
        axes = sum_axes(node, len(shape), weights)
        if axes is None or math.prod(shape[axis] for axis in axes) < LONG:
            return False
        add_in_turn(write, node, shape, axes)
        return True

    return _rewritten(model, serial)


def _write_in_double(write: NodeWriter, node: Any, types: Types) -> None:
    """Write an operator of one result in double precision, between numbers in single precision, if it takes any."""
    operands = list(node.input)
    for place in () if any(node.output[1:]) else data_operands(node):
        if _is_float(types, operands[place]):
            operands[place] = write.add("Cast", operands[place], to=TensorProto.DOUBLE)
    if write.nodes:
        wide = write.add(node.op_type, *operands)
        write.nodes[-1].attribute.extend(node.attribute)
        write.add("Cast", wide, output=node.output[0], to=TensorProto.FLOAT)


def _is_float(types: Types, name: str) -> bool:
    return name in types and types[name].elem_type == TensorProto.FLOAT


def _rewritten(model: Any, write_others: WriteOthers) -> Any | None:
    """Return the network with what computes operators otherwise, in branches and bodies, too; None if none is."""
    whole = copy_of(model)
    gone = rewrite(whole, "sum", write_others, inside=True)
    for graph in all_graphs(whole.graph):
        del graph.value_info[:]
    return whole if gone else None
