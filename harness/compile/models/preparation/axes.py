"""Axes counted from the first: on the texture and CLML paths TVM dies of `Squeeze(axes=[-1])`. Resize with all axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.base.tables import counted
from harness.compile.models.outline import NetworkView, attribute_of, constants, operand, tensor_types
from harness.compile.models.preparation.editing import NodeWriter, is_onnx, set_attribute

REDUCTIONS = tuple(
    f"Reduce{kind}" for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
)
MANY_FILES = ("Squeeze", "Unsqueeze", *REDUCTIONS)
"""Operators with a list of axes, which newer operator sets have as their second input."""
MODE, POLICY = "coordinate_transformation_mode", "keep_aspect_ratio_policy"
SINGLE = ("ArgMax", "ArgMin", "Concat", "LogSoftmax", "Softmax", "Split")


def count_axes_from_zero(model: Any) -> str:
    """Write negative axes from 0, where the rank is known."""
    types, values, writer = tensor_types(model), constants(model), NodeWriter(model, "axes")
    count = 0
    for node in model.graph.node:
        if not is_onnx(node, *MANY_FILES, *SINGLE):
            continue
        kind = types.get(node.output[0] if node.op_type == "Unsqueeze" else node.input[0])
        if kind is not None and kind.HasField("shape"):
            count += _count_from_zero(node, len(kind.shape.dim), values, writer)
    return f"counted the axes of {counted(count, 'operator')} from 0" if count else ""


def _count_from_zero(node: Any, rank: int, values: dict[str, Any], writer: NodeWriter) -> bool:
    """Return whether a node had a negative axis, which it has no longer."""
    from onnx import numpy_helper

    if node.op_type in SINGLE:
        axis = attribute_of(node, "axis", 0)
        if axis < 0:
            set_attribute(node, "axis", axis + rank)
        return bool(axis < 0)
    axes = attribute_of(node, "axes", [])
    name = operand(node, 1)
    given = numpy_helper.to_array(values[name]).ravel().tolist() if name in values else axes
    if all(axis >= 0 for axis in given):
        return False
    positive = [axis % rank for axis in given]
    if name:
        node.input[1] = writer.integers(*positive)
    else:
        set_attribute(node, "axes", positive)
    return True


def resize_all_axes(model: Any) -> str:
    """Write the scales and sizes of each Resize for all axes, and the sizes of a policy if they are whole pixels."""
    view, write = NetworkView(model), NodeWriter(model, "resize")
    count = sum(_resize_all_axes(node, view, write) for node in model.graph.node if is_onnx(node, "Resize"))
    return f"wrote {counted(count, 'Resize', 'Resize')} as TVM reads it" if count else ""


def _resize_all_axes(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    import numpy as np

    if symmetric := str(attribute_of(node, MODE, "")) == "half_pixel_symmetric":
        set_attribute(node, MODE, "half_pixel")  # the same where pixels are whole
    shape, axes, choose = view.shape(node.input[0]), attribute_of(node, "axes", []), choice_of(node)
    arrays = {place: view.constant(node, place) for place in range(1, len(node.input))}
    given = {place: array for place, array in arrays.items() if array is not None}
    if not shape or not (axes or choose) or len(given) < sum(map(bool, node.input[1:])):
        return symmetric
    rank, axes = len(shape), axes or [*range(len(shape))]
    if choose and 3 in given:
        exact = np.take(shape, axes) * choose(given[3] / np.take(shape, axes))
        given[3] = np.rint(exact).astype(np.int64)
        if not np.allclose(exact, given[3]):
            return symmetric
    for place, array in given.items():
        if array.size:
            whole = np.array(([0] * rank + [1] * rank, [1] * rank, shape)[place - 1], array.dtype)
            whole.reshape(-1, rank)[:, axes] = array.reshape(-1, len(axes))
            node.input[place] = write.constant(whole)
    for name in ("axes", POLICY):
        set_attribute(node, name, None)
    return True


def choice_of(node: Any) -> Callable[[Any], float] | None:
    """Return which of a Resize's ratios holds for all its axes; None if each has its own."""
    return {"not_larger": min, "not_smaller": max}.get(attribute_of(node, POLICY, ""))
