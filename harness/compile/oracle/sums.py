"""The same network with its sums in another order, or in double precision: how far a long sum may be off.

A judge rounds, too. The mean of 262,144 numbers, added one by one in single precision, is off by 2e-5 of itself.
Where the judge's answer differs from one with double sums, the judge is off. What onnxruntime has in single precision
only is written as sums that it has in double, or as several shorter ones (`harness.compile.oracle.sum_forms`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.compile.models.outline import constants, copy_of, inner_graphs, static_shape
from harness.compile.models.preparation.editing import is_onnx
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

if TYPE_CHECKING:
    Types = Mapping[str, Any]

LONG = 4096
"""Number of terms from which on the order of a sum is tried: a shorter one is off by less than any tolerance."""
WIDE = (
    *("ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"),
    *("CumSum", "MatMul", "Gemm", "Einsum", "ReduceProd", "Sum", "ScatterElements", "ScatterND", "Attention"),
    *("Softmax", "LogSoftmax", "LayerNormalization", "RMSNormalization", "LpNormalization", "DFT", "STFT"),
)
"""Operators with a sum, which onnxruntime also has in double precision. Its STFT over 400 numbers is off by 4e-5 of the
largest result in single precision, and one over 512 by 6e-7."""


def with_wide_sums(model: Any, types: Types) -> Any:
    """Return the network with its sums in double precision, or split."""
    model, types = as_means(model, types, LONG)
    shapes = {name: static_shape(kind) for name, kind in types.items()}

    def widen(node: Any) -> list[Any]:
        if not _is_float(types, node.output[0]):
            return [node]
        if is_onnx(node, *WIDE):
            return _in_double(node, types)
        if is_onnx(node, "AveragePool") and window_terms(node) >= LONG:
            return halve_window(node)
        if is_onnx(node, "Conv", "ConvTranspose") and (weight := shapes.get(node.input[1])):
            return split_convolution(node, weight) if convolution_terms(node, weight) >= LONG else [node]
        return [node]

    return _rewritten(model, widen)


def with_serial_sums(model: Any, types: Types) -> Any | None:
    """Return the network with each long sum added term by term; None if it has none."""
    model, types = as_means(model, types, LONG)
    model, types = as_functions(model, types, FUNCTIONS, LONG)
    weights, long = constants(model), False

    def serial(node: Any) -> list[Any]:
        nonlocal long
        shape = static_shape(types.get(node.input[0])) if is_onnx(node, "ReduceSum", "ReduceMean") else None
        if not shape or not _is_float(types, node.input[0]):
            return [node]
        axes = sum_axes(node, len(shape), weights)
        if axes is None or math.prod(shape[axis] for axis in axes) < LONG:
            return [node]
        long = True
        return add_in_turn(node, shape, axes)

    turns = _rewritten(model, serial)
    return turns if long else None


def _in_double(node: Any, types: Types) -> list[Any]:
    """Return an operator of one result in double precision, between numbers in single precision."""
    from onnx import TensorProto, helper

    name = node.output[0]
    if any(node.output[1:]):
        return [node]
    wide, before = helper.make_node(node.op_type, node.input, [f"{name}/wide"]), []
    wide.attribute.extend(node.attribute)
    for place in data_operands(node):
        if (operand := node.input[place]) and _is_float(types, operand):
            wide.input[place] = f"{name}/{place}/wide"
            before.append(helper.make_node("Cast", [operand], [wide.input[place]], to=TensorProto.DOUBLE))
    after = helper.make_node("Cast", wide.output, [name], to=TensorProto.FLOAT)
    return [*before, wide, after] if before else [node]


def _is_float(types: Types, name: str) -> bool:
    from onnx import TensorProto

    return name in types and types[name].elem_type == TensorProto.FLOAT


def _rewritten(model: Any, replace: Callable[[Any], Sequence[Any]]) -> Any:
    """Return the network with each operator replaced by what computes it otherwise, in branches and bodies, too."""
    whole = copy_of(model)
    _rewrite_graph(whole.graph, replace)
    return whole


def _rewrite_graph(graph: Any, replace: Callable[[Any], Sequence[Any]]) -> None:
    nodes = list(graph.node)
    del graph.node[:], graph.value_info[:]
    for node in nodes:
        for inner in inner_graphs(node):
            _rewrite_graph(inner, replace)
        graph.node.extend(replace(node))
