"""Number formats that numpy lacks: bfloat16, float8, int4. Between networks their numbers go in one that it has.

Each of them is exact in float32 or in 8 bits, so that a network can be cut where it has such numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.compile.models.outline import copy_of

SUFFIX = "/plain"
_FLOATS = ("BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0", "FLOAT4E2M1")
_INTEGERS = {"INT4": "INT8", "UINT4": "UINT8", "INT2": "INT8", "UINT2": "UINT8"}


def plain_type(kind: int) -> int:
    """Return the ONNX type that numbers of a type go in; 0 if they may go as they are."""
    from onnx import TensorProto

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
    from onnx import helper

    return helper.make_node("Cast", [name], [to], to=kind)
