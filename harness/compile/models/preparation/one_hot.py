"""OneHot as a comparison: TVM's importer takes no depth of one element, and counts no negative index from the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.base.tables import counted
from harness.compile.models.outline import NetworkView, attribute_of
from harness.compile.models.preparation.editing import NodeWriter, is_onnx, replace_nodes

if TYPE_CHECKING:
    from harness.compile.models.spec import Array


def write_one_hots(model: Any) -> str:
    """Compare indices with all places along the new axis, where the depth is a constant."""
    import numpy as np

    if not any(is_onnx(node, "OneHot") for node in model.graph.node):
        return ""
    view, write = NetworkView(model), NodeWriter(model, "one_hot")

    def comparison(node: Any) -> list[Any] | None:
        if not is_onnx(node, "OneHot"):
            return None
        depth, values, shape = view.constant(node, 1), view.constant(node, 2), view.shape(node.input[0])
        if depth is None or values is None or shape is None:
            return None
        count, axis = int(depth.item()), attribute_of(node, "axis", -1) % (len(shape) + 1)
        places = np.arange(count, dtype=np.int64).reshape([-1 if i == axis else 1 for i in range(len(shape) + 1)])
        indices = write.add("Cast", node.input[0], to=_INT64)
        negative = write.add("Less", indices, write.constant(np.zeros((), np.int64)))
        whole = write.add("Mul", write.add("Cast", negative, to=_INT64), write.constant(np.array(count, np.int64)))
        indices = write.add("Add", indices, whole)
        indices = write.add("Reshape", indices, write.integers(*shape[:axis], 1, *shape[axis:]))
        chosen = write.add("Equal", indices, write.constant(places))
        _write_values(node, chosen, values, write)
        return write.take()

    count = len(replace_nodes(model.graph, comparison))
    return f"wrote {counted(count, 'OneHot', 'OneHot')} as comparisons" if count else ""


def _write_values(node: Any, chosen: str, values: Array, write: NodeWriter) -> None:
    """Write one value where a place is chosen, and the other elsewhere.

    A product where the other is 0: TVM 0.27 takes minutes to hoist the choice out of a matrix product that it fuses.
    """
    import numpy as np
    from onnx import helper

    off, on = values
    if off != 0 or not np.isfinite(on):
        write.add("Where", chosen, write.constant(on), write.constant(off), output=node.output[0])
        return
    ones = write.add("Cast", chosen, to=helper.np_dtype_to_tensor_dtype(values.dtype))
    write.add("Mul", ones, write.constant(on), output=node.output[0])


_INT64 = 7
"""ONNX's number of int64 (TensorProto.INT64)."""
