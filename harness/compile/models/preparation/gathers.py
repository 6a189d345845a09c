"""Gather at constant places in a row as a slice.

TVM's importer writes five operators on constants for each Gather, to count negative places from the end, and compiles
them for the host one by one: 1.8 s of a processor for one round of the four loops of two LSTMs of tf2onnx.
"""

from __future__ import annotations

from typing import Any

from harness.base.tables import counted
from harness.compile.models.outline import NetworkView, attribute_of
from harness.compile.models.preparation.editing import NodeWriter, replace_nodes
from harness.compile.models.preparation.opset import opset_of

AXES_ARE_INPUTS = 13
"""First operator set in which Unsqueeze has its axes as an input."""


def write_gathers(model: Any) -> str:
    """Write each Gather of one place, or of places that follow each other, as a slice."""
    view, write, opset = NetworkView(model), NodeWriter(model, "gather"), opset_of(model)

    def slice_of(node: Any) -> list[Any] | None:
        places = view.constant(node, 1)
        if places is None or places.ndim > 1 or not places.size:
            return None
        axis, shape = attribute_of(node, "axis", 0), view.shape(node.input[0])
        if shape == () or 0 in (shape or ()):
            return None
        if shape is not None:
            axis %= len(shape)
            places = places % shape[axis]
        first, *others = (int(place) for place in places.ravel())
        if min(first, axis) < 0 or others != [*range(first + 1, first + 1 + len(others))]:
            return None
        if places.ndim:
            write.slice(node.input[0], first, first + places.size, axis, node.output[0])
        else:
            cut(write, node.input[0], first, axis, opset, node.output[0])
        return write.take()

    count = len(replace_nodes(model.graph, slice_of, "Gather"))
    return f"wrote {counted(count, 'Gather', 'Gather')} as slices" if count else ""


def cut(write: NodeWriter, tensor: str, place: int, axis: int, opset: int, output: str = "") -> str:
    """Write one place along an axis, without the axis."""
    return along(write, "Squeeze", write.slice(tensor, place, place + 1, axis), axis, opset, output)


def along(write: NodeWriter, operator: str, tensor: str, axis: int, opset: int, output: str = "") -> str:
    """Write an operator that adds or removes an axis."""
    if opset >= AXES_ARE_INPUTS:
        return write.add(operator, tensor, write.integers(axis), output=output)
    return write.add(operator, tensor, axes=[axis], output=output)
