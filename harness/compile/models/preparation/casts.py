"""Casts of floats to integers of 32 bits by way of 64.

TVM's importer writes the remainder of 2^32 and two choices for them, nested in whatever is fused with them. Its
simplifier takes minutes for a comparison of the result. It casts integers as C does, which keeps the same 32 bits.
"""

from __future__ import annotations

from typing import Any

from harness.base.tables import counted
from harness.compile.models.outline import NetworkView, attribute_of
from harness.compile.models.preparation.editing import NodeWriter, replace_nodes


def write_casts(model: Any) -> str:
    """Cast floats to int64, and that to int32 or uint32."""
    from onnx import TensorProto

    floats = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
    view, write = NetworkView(model), NodeWriter(model, "cast")

    def casts(node: Any) -> list[Any] | None:
        wanted = attribute_of(node, "to", 0)
        kind = view.kind(node.input[0]) if wanted in (TensorProto.INT32, TensorProto.UINT32) else None
        if kind is None or kind.elem_type not in floats:
            return None
        whole = write.add("Cast", node.input[0], to=TensorProto.INT64)
        write.add("Cast", whole, to=wanted, output=node.output[0])
        return write.take()

    count = len(replace_nodes(model.graph, casts, "Cast"))
    return f"wrote {counted(count, 'Cast', 'Cast')} of floats by way of int64" if count else ""
