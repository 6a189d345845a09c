"""Operators that index, as slices, comparisons, Gather and ScatterElements.

TVM's importer writes five operators on constants for each Gather, to count negative places from the end, and compiles
them for the host one by one: 1.8 s of a processor for one round of the four loops of two LSTMs of tf2onnx. It takes no
OneHot with a depth of one element, counts none of its negative indices from the end, and has no ReverseSequence and no
places of a MaxPool. Of a MaxUnpool it takes no size, and its padding in another order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.base.tables import counted
from harness.compile.models.outline import NetworkView, attribute_of, copy_of, operand
from harness.compile.models.preparation.constants import LARGEST_GROWTH_BYTES
from harness.compile.models.preparation.editing import NodeWriter, replace_nodes
from harness.compile.models.preparation.opset import opset_of
from harness.compile.models.preparation.padding import padding_of, strides_and_widths

if TYPE_CHECKING:
    from harness.compile.models.spec import Array

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


def write_pool_places(model: Any) -> str:
    """Gather the windows of a MaxPool whose places are read, and look up where the largest number of each is."""
    view, write = NetworkView(model), NodeWriter(model, "pool_place")

    def gathered(node: Any) -> list[Any] | None:
        if len(node.output) < 2:
            return None
        values, shape = copy_of(node), view.shape(node.input[0])
        del values.output[1:]
        if view.is_read(node.output[1]):
            if shape is None or attribute_of(node, "auto_pad", "NOTSET") != "NOTSET":
                return None
            _write_places(node, shape, write)
        return [values, *write.take()]

    count = len(replace_nodes(model.graph, gathered, "MaxPool"))
    return f"wrote the places of {count} MaxPool by index" if count else ""


def _write_places(node: Any, shape: tuple[int, ...], write: NodeWriter) -> None:
    """Write the places as ONNX counts them, through the whole tensor. The first of equal numbers counts."""
    import numpy as np

    planes, extents, order = shape[:2], shape[2:], "F" if attribute_of(node, "storage_order", 0) else "C"
    rows = _places_of_windows(node, extents)
    read = _counted_through(rows, np.empty(extents, np.int8).strides)
    named = _counted_through(rows, np.empty(extents, np.int8, order).strides)
    plane = write.add("Reshape", node.input[0], write.integers(*planes, math.prod(extents)))
    windows = write.add("Gather", plane, write.constant(read), axis=2)
    first = write.add("Mul", write.add("ArgMax", windows, axis=2, keepdims=0), write.integers(read.shape[1]))
    at = write.add("Add", first, write.constant(np.arange(read.shape[1])))
    places = write.add("Gather", write.constant(named.ravel()), at)
    begins = np.arange(math.prod(planes)).reshape(*planes, 1) * math.prod(extents)
    places = write.add("Add", places, write.constant(begins))
    counts = [row.shape[1] for row in rows]
    write.add("Reshape", places, write.integers(*planes, *counts), output=node.output[1])


def _places_of_windows(node: Any, extents: tuple[int, ...]) -> list[Array]:
    """Return, for each axis, the places of each window, one below the other; in place of padding the first again."""
    import numpy as np

    kernel = attribute_of(node, "kernel_shape", [])
    pads, dilations = padding_of(node, extents, kernel), attribute_of(node, "dilations", [1] * len(kernel))
    strides, widths = strides_and_widths(node, kernel)
    rows = []
    for axis, (extent, width, stride) in enumerate(zip(extents, widths, strides, strict=True)):
        begin, end = pads[axis], pads[axis + len(kernel)]
        windows = np.arange(0, begin + extent + end - width + 1, stride) - begin
        places = windows + np.arange(0, width, dilations[axis])[:, None]
        inside = (places >= 0) & (places < extent)
        rows.append(np.where(inside, places, np.take_along_axis(places, inside.argmax(0)[None], 0)))
    return rows


def _counted_through(rows: Sequence[Array], steps: Sequence[int]) -> Array:
    """Return the places of each window in all axes as one number, which grows by these steps along the axes."""
    import numpy as np

    spread = sum(step * each for step, each in zip(steps, np.ix_(*(row.ravel() for row in rows)), strict=True))
    axes = [*range(0, 2 * len(rows), 2), *range(1, 2 * len(rows), 2)]
    whole = np.reshape(spread, [extent for row in rows for extent in row.shape]).transpose(axes)
    return whole.reshape(math.prod(len(row) for row in rows), -1)


def write_unpools(model: Any) -> str:
    """Scatter the numbers of a MaxUnpool to their places in a tensor of zeros."""
    import numpy as np
    from onnx import helper

    view, write, opset = NetworkView(model), NodeWriter(model, "unpool"), opset_of(model)

    def scattered(node: Any) -> list[Any] | None:
        kind, shape, size = view.kind(node.input[0]), view.shape(node.input[0]), view.constant(node, 2)
        if kind is None or opset < 11 or (size is None and (shape is None or operand(node, 2))):
            return None
        if size is None:
            kernel = attribute_of(node, "kernel_shape", [])
            pads = np.reshape(attribute_of(node, "pads", [0] * 2 * len(kernel)), (2, -1)).sum(0)
            strides, _ = strides_and_widths(node, kernel)
            size = np.array([*shape[:2], *(np.array(shape[2:]) - 1) * strides + kernel - pads])
        zero = write.constant(np.zeros((), helper.tensor_dtype_to_np_dtype(kind.elem_type)))
        zeros = write.add("Expand", zero, write.integers(math.prod(size.tolist())))
        numbers, places = (write.add("Reshape", name, write.integers(-1)) for name in node.input[:2])
        whole = write.add("ScatterElements", zeros, places, numbers)
        write.add("Reshape", whole, write.integers(*size.tolist()), output=node.output[0])
        return write.take()

    count = len(replace_nodes(model.graph, scattered, "MaxUnpool"))
    return f"wrote {count} MaxUnpool as ScatterElements" if count else ""


def cut(write: NodeWriter, tensor: str, place: int, axis: int, opset: int, output: str = "") -> str:
    """Write one place along an axis, without the axis."""
    return along(write, "Squeeze", write.slice(tensor, place, place + 1, axis), axis, opset, output)


def along(write: NodeWriter, operator: str, tensor: str, axis: int, opset: int, output: str = "") -> str:
    """Write an operator that adds or removes an axis."""
    if opset >= AXES_ARE_INPUTS:
        return write.add(operator, tensor, write.integers(axis), output=output)
    return write.add(operator, tensor, axes=[axis], output=output)
