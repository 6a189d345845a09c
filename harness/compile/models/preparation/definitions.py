"""Operators that TVM's importer does not read, or reads as another domain's, by what ONNX defines them to be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx import TensorProto, defs, helper, inliner

from harness.base.failures import ModelError
from harness.compile.models.outline import (
    NetworkView,
    attribute_of,
    copy_of,
    is_onnx,
    kind_of,
    opset_of,
    static_shape,
    tensor_types,
)
from harness.compile.models.preparation.editing import NodeWriter, describe, rewrite
from harness.compile.models.preparation.opset import lower_opset

DEFINED = (
    *("Attention", "CausalConvWithState", "Celu", "CenterCropPad", "GroupNormalization", "LinearAttention"),
    *("NegativeLogLikelihoodLoss", "RotaryEmbedding", "SoftmaxCrossEntropyLoss", "SwiGLU", "Swish"),
)
"""Operators with a definition in ONNX's other operators. TVM takes `Attention` for that of onnxruntime's domain."""
OVER_NO_AXES = ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare")
PARTLY_READ = ("LayerNormalization", "RMSNormalization", *OVER_NO_AXES)
"""Operators with a definition of which TVM reads some right; a network with another has all written so."""
NORMS = ("LpNormalization", "MeanVarianceNormalization")
SMALLEST_NORM = 1.1754944e-38
"""Smallest normal float32: a vector of zeros is divided by it, and stays one, as in onnxruntime."""


def write_definitions(model: Any) -> str:
    """Write operators as ONNX defines them."""
    view, nodes = NetworkView(model), model.graph.node
    misread = {node.op_type for node in nodes if is_onnx(node, *PARTLY_READ) and _is_misread(node, view)}
    gone = [copy_of(node) for node in nodes if is_onnx(node, *DEFINED, *misread)]
    if gone and not inline(model, (*DEFINED, *misread)):
        gone.clear()
    for node in nodes:
        if node.op_type == "ReduceMax" and node.output[0].startswith("BiasRowMax"):
            # Of a row of -inf, as of a query that sees no key, TVM's maximum is the lowest finite number.
            node.op_type = "ReduceLogSumExp"
    gone += [*rewrite(model, "norm", write_norm, *NORMS), *rewrite(model, "scaled", _write_scaler)]
    return describe("wrote {} as ONNX defines them", gone)


def _is_misread(node: Any, view: NetworkView) -> bool:
    """Return whether TVM leaves out statistics, axes, or what a reduction over no axes does to each number."""
    if node.op_type in OVER_NO_AXES:
        return bool(attribute_of(node, "noop_with_empty_axes", 0))
    rank, axis = len(view.shape(node.input[0]) or ()), attribute_of(node, "axis", -1)
    if node.op_type == "LayerNormalization":
        several = rank == 4 and axis not in (3, -1)  # axes, which TVM cannot pack in fours, or has no schedule for
        return several or any(name and view.is_read(name) for name in node.output[1:])
    return rank == 4 or axis in (0, -rank)


def inline(model: Any, kinds: Sequence[str]) -> bool:
    """Return whether ONNX's inliner could write all of these kinds, which it cannot where a type is unknown."""
    typed = copy_of(model)
    _note_types(typed)
    for node in typed.graph.node:
        if is_onnx(node, *kinds):  # the inliner of onnx 1.23 loses defaults that a definition refers to
            given = {attribute.name for attribute in node.attribute}
            known = defs.get_schema(node.op_type, opset_of(model)).attributes
            defaults = [each.default_value for name, each in known.items() if name not in given]
            node.attribute.extend(default for default in defaults if default.type)
    try:
        whole = inliner.inline_selected_functions(typed, [("", kind) for kind in kinds], inline_schema_functions=True)
    except RuntimeError:
        return False
    del model.graph.node[:]
    model.graph.node.extend(whole.graph.node)
    return True


def lower_definitions(model: Any, version: int) -> bool:
    """Write a network in an older operator set, newer operators as ONNX defines them, or return False."""
    kinds = set[str]()
    while not lower_opset(model, version):
        before, nodes = kinds, filter(is_onnx, model.graph.node)
        kinds = {node.op_type for node in nodes if not defs.has(node.op_type, version, "")}
        if kinds == before:
            return False
        inline(model, sorted(kinds))  # which may be defined by newer ones
    return True


def _note_types(model: Any) -> None:
    """Note the types of all tensors, which the inliner asks for and of weights does not know."""
    graph = model.graph
    listed = {value.name for value in (*graph.input, *graph.output, *graph.value_info)}
    for name, kind in tensor_types(model).items():
        if name not in listed and kind.elem_type:
            graph.value_info.append(helper.make_tensor_value_info(name, kind.elem_type, static_shape(kind)))
    graph.value_info.append(helper.make_tensor_value_info("", TensorProto.FLOAT, None))  # of operands that are left out


def write_norm(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Write vectors that are divided by their norms, or by their deviation.

    TVM takes the root of a difference of two means, which rounding makes negative, and neither it nor onnxruntime adds
    what ONNX adds to the deviation: a constant channel was NaN. Raises ModelError for axes that the tensor lacks.
    """
    tensor = view.kind(node.input[0])
    if tensor is None or tensor.elem_type != TensorProto.FLOAT:
        return False
    data, of_mean = node.input[0], node.op_type == "MeanVarianceNormalization"
    axes = attribute_of(node, "axes", [0, 2, 3]) if of_mean else [attribute_of(node, "axis", -1)]
    if (rank := len(tensor.shape.dim)) and not all(-rank <= axis < rank for axis in axes):
        text = f"{node.op_type} {node.name or node.output[0]!r} is over axes {axes} of {data!r}, which has {rank} axes"
        raise ModelError(text, hint=f"export it with `axes` from 0 to {rank - 1}; without any it takes [0, 2, 3]")
    reduced = partial(write_reduction, write, opset_of(view.model))
    if of_mean:
        for kind in ("ReduceMax", "ReduceMean"):  # a mean of what is alike need not be that, its largest number is
            data = write.add("Sub", data, reduced(kind, data, axes))
        deviation = write.add("Sqrt", reduced("ReduceMean", write.add("Mul", data, data), axes))
        divisor = write.add("Add", deviation, write.constant(np.array(1e-9, np.float32)))
    else:
        norm = reduced(f"ReduceL{attribute_of(node, 'p', 2)}", data, axes)
        divisor = write.add("Max", norm, write.constant(np.array(SMALLEST_NORM, np.float32)))
    write.add("Div", data, divisor, output=node.output[0])
    return True


def write_reduction(
    write: NodeWriter, opset: int, kind: str, data: str, axes: Sequence[int], *, output: str = ""
) -> str:
    """Write a reduction along some axes, which are an input from operator set 18 on; returns its result's name."""
    if opset < 18:
        return write.add(kind, data, output=output, axes=axes)
    return write.add(kind, data, write.integers(*axes), output=output)


def _write_scaler(node: Any, _view: NetworkView, write: NodeWriter) -> bool:
    """Write how sklearn's networks scale their inputs, by an operator of another domain."""
    numbers = [attribute_of(node, name, None) for name in ("offset", "scale")]
    if kind_of(node) != "ai.onnx.ml.Scaler" or None in numbers:
        return False
    names = [write.constant(np.array(each, np.float32)) for each in numbers]
    moved = write.add("Sub", write.add("Cast", node.input[0], to=TensorProto.FLOAT), names[0])
    write.add("Mul", moved, names[1], output=node.output[0])
    return True
