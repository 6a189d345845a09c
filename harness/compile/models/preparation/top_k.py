"""TopK as ranks: TVM's release has no schedule of it for OpenCL.

The rank of a number is how many come before it: those that are larger, and equal ones at earlier places.
"""

from __future__ import annotations

from typing import Any

from harness.base.tables import counted
from harness.compile.models.outline import NetworkView, attribute_of
from harness.compile.models.preparation.cumulative_sums import MOST_PAIRS
from harness.compile.models.preparation.editing import NodeWriter, replace_nodes
from harness.compile.models.preparation.gathers import along
from harness.compile.models.preparation.opset import opset_of


def write_top_k(model: Any) -> str:
    """Count the rank of each number along a known axis, and take those of the first ranks in their order."""
    import numpy as np
    from onnx import TensorProto, helper

    view, write, opset = NetworkView(model), NodeWriter(model, "top_k"), opset_of(model)

    def column(array: Any, after: int) -> str:
        return write.constant(array.reshape(*array.shape, *[1] * after))

    def total(numbers: str, axis: int, output: str = "") -> str:
        return along(write, "Squeeze", along(write, "ReduceSum", numbers, axis, opset), axis, opset, output)

    def ranks(node: Any) -> list[Any] | None:
        numbers, kind, count = node.input[0], view.kind(node.input[0]), view.constant(node, 1)
        shape = view.shape(numbers)
        if kind is None or count is None or not shape or not attribute_of(node, "sorted", 1):
            return None
        axis = attribute_of(node, "axis", -1) % len(shape)
        if shape[axis] ** 2 > MOST_PAIRS:
            return None
        places, after = np.arange(shape[axis]), len(shape) - axis - 1
        larger = "Greater" if attribute_of(node, "largest", 1) else "Less"
        own, others = (along(write, "Unsqueeze", numbers, place, opset) for place in (axis + 1, axis))
        ties = write.add("And", write.add("Equal", others, own), column(places < places[:, None], after))
        before = write.add("Or", write.add(larger, others, own), ties)
        rank = total(write.add("Cast", before, to=TensorProto.INT64), axis + 1)
        wanted = column(np.arange(int(count.item()))[:, None], after)
        here = write.add("Equal", along(write, "Unsqueeze", rank, axis, opset), wanted)
        zero = write.constant(np.zeros((), helper.tensor_dtype_to_np_dtype(kind.elem_type)))
        total(write.add("Where", here, others, zero), axis + 1, node.output[0])
        if len(node.output) > 1 and node.output[1]:
            nothing = write.constant(np.zeros((), np.int64))
            total(write.add("Where", here, column(places, after), nothing), axis + 1, node.output[1])
        return write.take()

    count = len(replace_nodes(model.graph, ranks, "TopK"))
    return f"wrote {counted(count, 'TopK', 'TopK')} as ranks" if count else ""
