"""Operators that onnxruntime's optimiser fuses, in ONNX's own: `model_optimized.onnx` has them, and its like.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md. TVM's importer lacks them, but for
SkipLayerNormalization with all its inputs; ONNX's inference knows no shape behind any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from harness.compile.models.outline import NetworkView, attribute_of, is_onnx, operand, opset_of
from harness.compile.models.preparation.definitions import write_reduction
from harness.compile.models.preparation.editing import NodeWriter, describe, rewrite
from harness.compile.models.preparation.opset import CONVERTED_TO, lower_opset

NORM, NORM_IS_NEW = "LayerNormalization", 17
"""The optimiser also writes it in older operator sets, which lack it."""


def write_fused(model: Any) -> str:
    """Write what onnxruntime's optimiser fused as the operators that it was made of."""
    gone = list[Any]()
    while replaced := rewrite(model, "fused", _write_apart):  # what comes of one may tell the type of the next
        gone += replaced
    if CONVERTED_TO <= opset_of(model) < NORM_IS_NEW and any(is_onnx(node, NORM) for node in model.graph.node):
        lower_opset(model, NORM_IS_NEW)
    return describe("took {} of onnxruntime's optimiser apart", gone)


def _write_apart(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    parts = _FUSED.get(node.op_type) if node.domain in ("", "com.microsoft") else None
    if parts is None or not parts(node, view, write):
        return False
    write.nodes[-1].name = write.nodes[-1].output[0] = node.output[0]
    return True


def _write_product(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Write a Conv or Gemm, what is added to it, and its activation."""
    own = {each.name: attribute_of(node, each.name, None) for each in node.attribute if "activation" not in each.name}
    value = write.add(node.op_type.removeprefix("Fused"), *node.input[:3], **own)
    value = write.add("Add", value, operand(node, 3)) if operand(node, 3) else value
    kind, old = attribute_of(node, "activation", "Identity"), opset_of(view.model) < 11  # Clip has attributes there
    numbers = attribute_of(node, "activation_params", [attribute_of(node, "activation_alpha", 0.01)])
    names = {"Clip": ("min", "max"), "LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}.get(kind, ())
    bounds = [write.constant(np.array(each, np.float32)) for each in numbers] if kind == "Clip" and not old else []
    write.add(kind, value, *bounds, **({} if bounds else dict(zip(names, numbers, strict=False))))
    return True


def _write_matrix_product(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    kinds, names = [view.kind(name) for name in node.input], list(node.input)
    if any(attribute_of(node, f"transBatch{side}", 0) for side in "AB"):
        return False
    for place, kind in enumerate(kinds):
        if attribute_of(node, f"trans{'AB'[place]}", 0):
            if kind is None or not kind.HasField("shape"):
                return False
            axes = [*range(len(kind.shape.dim))]
            names[place] = write.add("Transpose", names[place], perm=[*axes[:-2], *axes[-2:][::-1]])
    product, alpha = write.add("MatMul", *names), attribute_of(node, "alpha", 1.0)
    if alpha != 1:
        write.add("Mul", product, write.constant(_number(view, node.input, alpha)))
    return True


def _write_norm(node: Any, _view: NetworkView, write: NodeWriter) -> bool:
    *both, gain, shift, bias = (operand(node, place) for place in range(5))
    if any(node.output[1:3]):
        return False
    both = [write.add("Add", *both), bias] if bias else both
    total = write.add("Add", *both, output="".join(node.output[3:]))
    write.add("LayerNormalization", total, *filter(None, (gain, shift)), epsilon=attribute_of(node, "epsilon", 1e-12))
    return True


def _write_root_norm(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Write vectors that are divided by the roots of their mean squares, which onnxruntime has in ONNX's own domain."""
    data, axis = node.input[0], attribute_of(node, "axis", -1)
    if axis != -1:
        return False
    squares = write_reduction(write, opset_of(view.model), "ReduceMean", write.add("Mul", data, data), [axis])
    epsilon = write.constant(_number(view, [data], attribute_of(node, "epsilon", 1e-5)))
    scaled = write.add("Div", data, write.add("Sqrt", write.add("Add", squares, epsilon)))
    write.add("Mul", scaled, node.input[1])
    return True


def _write_gate(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Write a number times the sigmoid of its multiple."""
    data, alpha = node.input[0], attribute_of(node, "alpha", 1.702)
    multiple = write.add("Mul", data, write.constant(_number(view, [data], alpha))) if alpha != 1 else data
    write.add("Mul", data, write.add("Sigmoid", multiple))
    return True


def _number(view: NetworkView, names: Sequence[str], number: float) -> Any:
    """Return a number in the format of tensors, or in float32 if that is known of none."""
    formats = (kind.elem_type for name in names if (kind := view.kind(name)))
    return np.array(number, helper.tensor_dtype_to_np_dtype(next(formats, TensorProto.FLOAT)))


def _write_byte_product(node: Any, _view: NetworkView, write: NodeWriter) -> bool:
    names = [operand(node, place) for place in range(7)]
    if node.op_type == "DynamicQuantizeMatMul":
        data, scale, zero = parts = [write.name() for _ in range(3)]
        write.nodes.append(helper.make_node("DynamicQuantizeLinear", names[:1], parts, data))
        names = [data, names[1], scale, names[2], zero, *names[3:5]]
    product = write.add("Cast", write.add("MatMulInteger", *names[:2], *names[4:6]), to=TensorProto.FLOAT)
    value = write.add("Mul", product, write.add("Mul", *names[2:4]))
    if names[6]:
        write.add("Add", value, names[6])
    return True


_FUSED = {
    **dict.fromkeys(("FusedConv", "FusedGemm"), _write_product),
    **dict.fromkeys(("DynamicQuantizeMatMul", "MatMulIntegerToFloat"), _write_byte_product),
    "FusedMatMul": _write_matrix_product,
    "QuickGelu": _write_gate,
    "SkipLayerNormalization": _write_norm,
    "SimplifiedLayerNormalization": _write_root_norm,
}
