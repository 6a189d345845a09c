"""Operators that index, as slices, comparisons and Gather.

TVM's importer writes five operators on constants for each Gather, to count negative places from the end, and compiles
them for the host one by one: 1.8 s of a processor for one round of the four loops of two LSTMs of tf2onnx. It takes no
OneHot with a depth of one element, counts none of its negative indices from the end, and has no ReverseSequence.
"""

from __future__ import annotations

import math
from typing import Any

from harness.base.tables import counted
from harness.compile.models.outline import NetworkView, attribute_of
from harness.compile.models.preparation.constants import LARGEST_GROWTH_BYTES
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


def write_reversals(model: Any) -> str:
    """Gather each sequence backwards up to its length."""
    view, writer = NetworkView(model), NodeWriter(model, "reversed")

    def gathered(node: Any) -> list[Any] | None:
        lengths, shape = view.constant(node, 1), view.shape(node.input[0])
        if lengths is None or shape is None or 8 * math.prod(shape[:2]) > LARGEST_GROWTH_BYTES:
            return None
        _write_reversal(node, [int(length) for length in lengths], shape, writer)
        return writer.take()

    count = len(replace_nodes(model.graph, gathered, "ReverseSequence"))
    return f"wrote {count} ReverseSequence by index" if count else ""


def _write_reversal(node: Any, lengths: list[int], shape: tuple[int, ...], write: NodeWriter) -> None:
    times, batch = attribute_of(node, "time_axis", 0), attribute_of(node, "batch_axis", 1)
    steps, output = shape[times], node.output[0]
    orders = [[*range(length - 1, -1, -1), *range(length, steps)] for length in lengths]
    if len({*lengths}) == 1:
        write.add("Gather", node.input[0], write.integers(*orders[0]), axis=times, output=output)
        return
    backwards = []
    for place, order in enumerate(orders):
        row = write.slice(node.input[0], place, place + 1, batch)
        backwards.append(write.add("Gather", row, write.integers(*order), axis=times))
    write.add("Concat", *backwards, axis=batch, output=output)


def cut(write: NodeWriter, tensor: str, place: int, axis: int, opset: int, output: str = "") -> str:
    """Write one place along an axis, without the axis."""
    return along(write, "Squeeze", write.slice(tensor, place, place + 1, axis), axis, opset, output)


def along(write: NodeWriter, operator: str, tensor: str, axis: int, opset: int, output: str = "") -> str:
    """Write an operator that adds or removes an axis."""
    if opset >= AXES_ARE_INPUTS:
        return write.add(operator, tensor, write.integers(axis), output=output)
    return write.add(operator, tensor, axes=[axis], output=output)
