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
        # |index - place + depth / 2| is depth / 2 at the place, from either end. This reads the index once, as a float:
        # TVM's simplifier takes minutes for a comparison of an integer with what is fused with it.
        middles = (np.arange(count) - count / 2).astype(np.float32).reshape([-1, *[1] * (len(shape) - axis)])
        indices = write.add("Cast", write.add("Cast", node.input[0], to=TensorProto.INT64), to=TensorProto.FLOAT)
        indices = write.add("Reshape", indices, write.integers(*shape[:axis], 1, *shape[axis:]))
        distances = write.add("Abs", write.add("Sub", indices, write.constant(middles)))
        chosen = write.add("Equal", distances, write.constant(np.array(count / 2, np.float32)))
        off, on = (write.constant(value) for value in values)
        write.add("Where", chosen, on, off, output=node.output[0])
        return write.take()

    count = len(replace_nodes(model.graph, comparison, "OneHot"))
    return f"wrote {counted(count, 'OneHot', 'OneHot')} as comparisons" if count else ""
