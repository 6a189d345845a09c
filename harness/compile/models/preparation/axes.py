"""Axes counted from the first: on the texture and CLML paths TVM dies of `Squeeze(axes=[-1])`.

Places in what is split likewise: TVM's importer knows no last part of a `SplitToSequence`. And before 0.27 it takes no
slope of a PRelu with fewer axes than the tensor, but for one, as torch exports it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import numpy_helper

from harness.base.tables import counted
from harness.compile.models.outline import NetworkView, attribute_of, constants, is_onnx, operand, tensor_types
from harness.compile.models.preparation.editing import NodeWriter, replacing, set_attribute

REDUCTIONS = tuple(
    f"Reduce{kind}" for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
)
MANY_FILES = ("Squeeze", "Unsqueeze", *REDUCTIONS)
"""Operators with a list of axes, which newer operator sets have as their second input."""
SINGLE = ("ArgMax", "ArgMin", "Concat", "LogSoftmax", "Softmax", "Split")


def count_axes_from_zero(model: Any) -> str:
    """Write negative axes from 0, each once, where the rank is known: onnxruntime takes those that TVM refuses."""
    types, values, writer = tensor_types(model), constants(model), NodeWriter(model, "axes")
    count = 0
    for node in model.graph.node:
        if not is_onnx(node, *MANY_FILES, *SINGLE):
            continue
        kind = types.get(node.output[0] if node.op_type == "Unsqueeze" else node.input[0])
        if kind is not None and kind.HasField("shape"):
            count += _count_from_zero(node, len(kind.shape.dim), values, writer)
    return f"counted the axes of {counted(count, 'operator')} from 0" if count else ""


@replacing("slope", "wrote the slope of {} for all axes", "PRelu")
def write_slopes(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Write a constant slope with as many axes as the tensor."""
    slope, shape = view.constant(node, 1), view.shape(node.input[0])
    if slope is None or shape is None or not 1 < slope.ndim < len(shape):
        return False
    node.input[1] = write.constant(slope[(None,) * (len(shape) - slope.ndim)])
    write.nodes.append(node)
    return True


def count_parts_from_zero(model: Any) -> str:
    """Write negative places of SequenceAt from 0, where it is known into how many parts a tensor is split."""
    view, write, count = NetworkView(model), NodeWriter(model, "place"), 0
    for node in model.graph.node:
        if is_onnx(node, "SequenceAt") and (split := view.maker(node.input[0], "SplitToSequence")):
            place, parts = view.constant(node, 1), _parts(split, view)
            if place is not None and parts and place.item() < 0:
                node.input[1] = write.constant(np.array(place.item() + parts))
                count += 1
    return f"counted {counted(count, 'place of a SequenceAt', 'places of SequenceAt')} from 0" if count else ""


def _parts(split: Any, view: NetworkView) -> int:
    """Return into how many parts a SplitToSequence splits; 0 if that is not known."""
    lengths, shape = view.constant(split, 1), view.shape(split.input[0])
    if lengths is not None and lengths.ndim:
        return int(lengths.size)
    if shape is None or (operand(split, 1) and lengths is None):
        return 0
    return int(-(-shape[attribute_of(split, "axis", 0)] // (1 if lengths is None else lengths.item())))


def _count_from_zero(node: Any, rank: int, values: dict[str, Any], writer: NodeWriter) -> bool:
    """Return whether a node had a negative axis, which it has no longer."""
    if node.op_type in SINGLE:
        axis = attribute_of(node, "axis", 0)
        if axis < 0:
            set_attribute(node, "axis", axis + rank)
        return bool(axis < 0)
    axes = attribute_of(node, "axes", [])
    name = operand(node, 1)
    given = numpy_helper.to_array(values[name]).ravel().tolist() if name in values else axes
    positive = [*dict.fromkeys(axis + rank if axis < 0 else axis for axis in given)]
    if positive == given:
        return False
    if name:
        node.input[1] = writer.integers(*positive)
    else:
        set_attribute(node, "axes", positive)
    return True
