"""A network with its numbers in other formats.

A wider one keeps the program, without most of its rounding. Formats that numpy lacks (bfloat16, float8, int4) go in one
that it has between networks: each of them is exact in float32 or in 8 bits, so that a network can be cut there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import TensorProto, helper, numpy_helper

from harness.compile.models.outline import copy_of, inlined, inner_graphs, operand, tensor_types

SUFFIX = "/plain"
_FLOATS = ("BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0", "FLOAT4E2M1")
_INTEGERS = {"INT4": "INT8", "UINT4": "UINT8", "INT2": "INT8", "UINT2": "UINT8"}
_TYPES = ("dtype", "to")
"""Attributes that name a number format."""
_SINGLE = {"Resize": (1, 2), "Upsample": (1,)}
"""Operands that are float32 by definition: regions and scales."""


def in_double(model: Any) -> Any:
    """Return the network, with its inputs, in double precision where it is in single precision."""
    return _widened(model, TensorProto.FLOAT, TensorProto.DOUBLE)


def in_single(model: Any) -> Any:
    """Return the network, with its inputs, in single precision where it is in half precision."""
    return _widened(model, TensorProto.FLOAT16, TensorProto.FLOAT)


def without_bfloats(model: Any) -> Any:
    """Return the network in single precision where it is in bfloat16, which neither onnxruntime nor TVM computes."""
    bfloats = any(kind.elem_type == TensorProto.BFLOAT16 for kind in tensor_types(model).values())
    return _widened(inlined(model), TensorProto.BFLOAT16, TensorProto.FLOAT) if bfloats else model


def _widened(model: Any, narrow: int, wide: int) -> Any:
    whole = copy_of(model)
    del whole.graph.value_info[:]
    _widen(whole.graph, narrow, wide)
    return whole


def _widen(graph: Any, narrow: int, wide: int) -> None:
    """Widen one graph, and those inside its nodes."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == narrow:
            value.type.tensor_type.elem_type = wide
    single = {operand(node, place) for node in graph.node for place in _SINGLE.get(node.op_type, ())}
    for tensor in graph.initializer:
        if tensor.name not in single:
            _widen_tensor(tensor, narrow, wide)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in _TYPES and attribute.i == narrow:
                attribute.i = wide
            elif attribute.HasField("t") and not single.intersection(node.output):
                _widen_tensor(attribute.t, narrow, wide)
        for inner in inner_graphs(node):
            _widen(inner, narrow, wide)


def _widen_tensor(tensor: Any, narrow: int, wide: int) -> None:
    if tensor.data_type == narrow:
        array = numpy_helper.to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(wide))
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def plain_type(kind: int) -> int:
    """Return the ONNX type that numbers of a type go in; 0 if they may go as they are."""
    name = TensorProto.DataType.Name(kind) if kind in TensorProto.DataType.values() else ""
    plain = "FLOAT" if name in _FLOATS else _INTEGERS.get(name, "UNDEFINED")
    return int(TensorProto.DataType.Value(plain))


def with_plain_copies(model: Any, names: Sequence[str], kinds: Mapping[str, int]) -> tuple[Any, list[str]]:
    """Return the network with a plain copy of each of these tensors that needs one, and the names to ask for."""
    odd = [name for name in names if plain_type(kinds.get(name, 0))]
    whole = copy_of(model)
    whole.graph.node.extend(cast(name, name + SUFFIX, plain_type(kinds[name])) for name in odd)
    return whole, [name + SUFFIX if name in odd else name for name in names]


def cast(name: str, to: str, kind: int) -> Any:
    """Return the node that gives a tensor another ONNX type, under another name."""
    return helper.make_node("Cast", [name], [to], to=kind)
