"""A network with its single-precision numbers in double precision: the same program, without most of its rounding."""

from __future__ import annotations

from typing import Any

from harness.compile.models.outline import inner_graphs

_TYPES = ("dtype", "to")
"""Attributes that name a number format."""
_SINGLE = {"Resize": (1, 2), "Upsample": (1,)}
"""Operands that are float32 by definition: regions and scales."""


def in_double(model: Any) -> Any:
    """Return the network, with its inputs, in double precision."""
    import onnx

    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.value_info[:]
    _widen(whole.graph)
    return whole


def _widen(graph: Any) -> None:
    """Widen one graph, and those inside its nodes."""
    from onnx import TensorProto

    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE
    single = {
        node.input[place]
        for node in graph.node
        for place in _SINGLE.get(node.op_type, ())
        if place < len(node.input) and node.input[place]
    }
    for tensor in graph.initializer:
        if tensor.name not in single:
            _widen_tensor(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in _TYPES and attribute.i == TensorProto.FLOAT:
                attribute.i = TensorProto.DOUBLE
            elif attribute.HasField("t") and not single.intersection(node.output):
                _widen_tensor(attribute.t)
        for inner in inner_graphs(node):
            _widen(inner)


def _widen_tensor(tensor: Any) -> None:
    from onnx import TensorProto, numpy_helper

    if tensor.data_type == TensorProto.FLOAT:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype("float64"), tensor.name))
