"""CumSum as sums of what is chosen by a triangle: TVM's release has no schedule of it for OpenCL."""

from __future__ import annotations

from typing import Any

from harness.base.tables import counted
from harness.compile.models.outline import NetworkView, attribute_of
from harness.compile.models.preparation.editing import NodeWriter, replace_nodes
from harness.compile.models.preparation.gathers import along
from harness.compile.models.preparation.opset import opset_of

MOST_PAIRS = 1 << 24
"""Most pairs of places along an axis: 4096 squared. The triangle of more would be too large a constant."""


def write_cumulative_sums(model: Any) -> str:
    """Sum, for each place along a known axis, the numbers up to it."""
    import numpy as np
    from onnx import helper

    view, write, opset = NetworkView(model), NodeWriter(model, "cumulative_sum"), opset_of(model)

    def sums(node: Any) -> list[Any] | None:
        numbers, kind, axes = node.input[0], view.kind(node.input[0]), view.constant(node, 1)
        shape = view.shape(numbers)
        if kind is None or axes is None or not shape or shape[axis := int(axes.item()) % len(shape)] ** 2 > MOST_PAIRS:
            return None
        places = np.arange(shape[axis])
        later, earlier = places[:, None], places
        if attribute_of(node, "reverse", 0):
            later, earlier = earlier, later
        counts = earlier < later if attribute_of(node, "exclusive", 0) else earlier <= later
        triangle = write.constant(counts.reshape(*counts.shape, *[1] * (len(shape) - axis - 1)))
        zero = write.constant(np.zeros((), helper.tensor_dtype_to_np_dtype(kind.elem_type)))
        pairs = along(write, "Unsqueeze", numbers, axis, opset)
        chosen = write.add("Where", triangle, pairs, zero)
        summed = along(write, "ReduceSum", chosen, axis + 1, opset)
        along(write, "Squeeze", summed, axis + 1, opset, node.output[0])
        return write.take()

    count = len(replace_nodes(model.graph, sums, "CumSum"))
    return f"wrote {counted(count, 'CumSum', 'CumSum')} as sums over a triangle" if count else ""
