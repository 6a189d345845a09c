"""Exponents in the number format of their base: ONNX's Pow takes any, TVM's importer only the same."""

from __future__ import annotations

from typing import Any

from harness.compile.models.outline import NetworkView
from harness.compile.models.preparation.editing import NodeWriter, is_onnx


def write_exponents_as_floats(model: Any) -> str:
    """Give constant exponents the number format of what is raised to them, where that holds the same number."""
    from onnx import helper

    view, writer, count = NetworkView(model), NodeWriter(model, "exponent"), 0
    for node in model.graph.node:
        if not is_onnx(node, "Pow"):
            continue
        exponent, kind = view.constant(node, 1), view.kind(node.input[0])
        if exponent is None or kind is None:
            continue
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type)
        if exponent.dtype != dtype and (exponent.astype(dtype) == exponent).all():
            node.input[1] = writer.constant(exponent.astype(dtype))
            count += 1
    return f"wrote the exponents of {count} Pow in the number format of their bases" if count else ""
