"""OneHot as a comparison: TVM's importer takes no depth of one element, and counts no negative index from the end."""

from __future__ import annotations

from typing import Any

from harness.base.tables import counted
from harness.compile.models.outline import NetworkView, attribute_of
from harness.compile.models.preparation.constants import LARGEST_GROWTH_BYTES
from harness.compile.models.preparation.editing import NodeWriter, replace_nodes


def write_one_hots(model: Any) -> str:
    """Compare indices with all places along the new axis, where the depth is a constant."""
    import numpy as np
    from onnx import TensorProto

    view, write = NetworkView(model), NodeWriter(model, "one_hot")

    def comparison(node: Any) -> list[Any] | None:
        depth, values, shape = view.constant(node, 1), view.constant(node, 2), view.shape(node.input[0])
        if depth is None or values is None or shape is None:
            return None
        count, axis = int(depth.item()), attribute_of(node, "axis", -1) % (len(shape) + 1)
        if 8 * count > LARGEST_GROWTH_BYTES:
            return None
        # Without axes of 1 before it: of (1, 1, 1, 1, 4) TVM would make an image, which has no texels of int64.
        places = np.arange(count, dtype=np.int64).reshape([-1, *[1] * (len(shape) - axis)])
        indices = write.add("Cast", node.input[0], to=TensorProto.INT64)
        negative = write.add("Less", indices, write.constant(np.zeros((), np.int64)))
        size = write.constant(np.array(count, np.int64))
        whole = write.add("Mul", write.add("Cast", negative, to=TensorProto.INT64), size)
        indices = write.add("Add", indices, whole)
        indices = write.add("Reshape", indices, write.integers(*shape[:axis], 1, *shape[axis:]))
        chosen = write.add("Equal", indices, write.constant(places))
        off, on = (write.constant(value) for value in values)
        write.add("Where", chosen, on, off, output=node.output[0])
        return write.take()

    count = len(replace_nodes(model.graph, comparison, "OneHot"))
    return f"wrote {counted(count, 'OneHot', 'OneHot')} as comparisons" if count else ""
