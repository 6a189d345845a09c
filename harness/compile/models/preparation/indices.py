"""Operators that index, as slices, comparisons, Gather and ScatterElements.

TVM's importer writes five operators on constants for each Gather, to count negative places from the end, and compiles
them for the host one by one: 1.8 s of a processor for one round of the four loops of two LSTMs of tf2onnx. It takes no
OneHot with a depth of one element, counts none of its negative indices from the end, and has no ReverseSequence and no
places of a MaxPool. Of a MaxUnpool it takes no size, and its padding in another order. Before 0.27 it reads beyond the
tensor for negative places of a GatherElements or ScatterND.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from device_runner.device import Array
from harness.compile.models.outline import NetworkView, attribute_of, copy_of, opset_of
from harness.compile.models.preparation.constants import LARGEST_GROWTH_BYTES
from harness.compile.models.preparation.editing import NodeWriter, replacing
from harness.compile.models.preparation.padding import padding_of, strides_and_widths

AXES_ARE_INPUTS = 13
"""First operator set in which Unsqueeze has its axes as an input."""


@replacing("gather", "wrote {} as slices", "Gather")
def write_gathers(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Write each Gather of one place, or of places that follow each other, as a slice."""
    places = view.constant(node, 1)
    if places is None or places.ndim > 1 or not places.size:
        return False
    axis, shape = attribute_of(node, "axis", 0), view.shape(node.input[0])
    if shape == () or 0 in (shape or ()):
        return False
    if shape is not None:
        axis %= len(shape)
        places = places % shape[axis]
    first, *others = (int(place) for place in places.ravel())
    if min(first, axis) < 0 or others != [*range(first + 1, first + 1 + len(others))]:
        return False
    if places.ndim:
        write.slice(node.input[0], first, first + places.size, axis, node.output[0])
    else:
        cut(write, node.input[0], first, axis, opset_of(view.model), node.output[0])
    return True


@replacing("place", "counted the places of {} from 0", "GatherElements", "GatherND", "ScatterElements", "ScatterND")
def count_places_from_zero(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Count constant places from the first, where some are from the end."""
    places: Any = view.constant(node, 1)
    shape = view.shape(node.input[0])
    if places is None or not shape or not (places < 0).any():
        return False
    if node.op_type.endswith("ND"):
        extents = np.array(shape[attribute_of(node, "batch_dims", 0) :][: places.shape[-1]])
    else:
        extents = np.array(shape[attribute_of(node, "axis", 0)])
    node.input[1] = write.constant(np.where(places < 0, places + extents, places).astype(places.dtype))
    write.nodes.append(node)
    return True


@replacing("one_hot", "wrote {} as comparisons", "OneHot")
def write_one_hots(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Compare indices with all places along the new axis, where the depth is a constant."""
    depth, values, shape = view.constant(node, 1), view.constant(node, 2), view.shape(node.input[0])
    if depth is None or values is None or shape is None:
        return False
    count, axis = int(depth.item()), attribute_of(node, "axis", -1) % (len(shape) + 1)
    if 8 * count > LARGEST_GROWTH_BYTES:
        return False
    # |index - place + depth / 2| is depth / 2 at the place, from either end. This reads the index once, as a float:
    # TVM's simplifier takes minutes for a comparison of an integer with what is fused with it.
    middles = (np.arange(count) - count / 2).astype(np.float32).reshape([-1, *[1] * (len(shape) - axis)])
    indices = write.add("Cast", write.add("Cast", node.input[0], to=TensorProto.INT64), to=TensorProto.FLOAT)
    indices = write.add("Reshape", indices, write.integers(*shape[:axis], 1, *shape[axis:]))
    distances = write.add("Abs", write.add("Sub", indices, write.constant(middles)))
    chosen = write.add("Equal", distances, write.constant(np.array(count / 2, np.float32)))
    off, on = (write.constant(value) for value in values)
    write.add("Where", chosen, on, off, output=node.output[0])
    return True


@replacing("reversed", "wrote {} by index", "ReverseSequence")
def write_reversals(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Gather each sequence backwards up to its length."""
    lengths, shape = view.constant(node, 1), view.shape(node.input[0])
    if lengths is None or shape is None or 8 * math.prod(shape[:2]) > LARGEST_GROWTH_BYTES:
        return False
    _write_reversal(node, [int(length) for length in lengths], shape, write)
    return True


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


@replacing("pool_place", "wrote the places of {} by index, if they are read", "MaxPool")
def write_pool_places(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Gather the windows of a MaxPool whose places are read, and look up where the largest number of each is."""
    if len(node.output) < 2:
        return False
    values, shape = copy_of(node), view.shape(node.input[0])
    del values.output[1:]
    if view.is_read(node.output[1]):
        if shape is None or attribute_of(node, "auto_pad", "NOTSET") != "NOTSET":
            return False
        _write_places(node, shape, write)
    write.nodes.append(values)
    return True


def _write_places(node: Any, shape: tuple[int, ...], write: NodeWriter) -> None:
    """Write the places as ONNX counts them, through the whole tensor. The first of equal numbers counts."""
    planes, size = shape[:2], math.prod(shape[2:])
    order: Any = "F" if attribute_of(node, "storage_order", 0) else "C"
    windows, counts = _windows(node, shape[2:])
    named = np.arange(size).reshape(shape[2:], order=order).ravel()[windows]
    plane = write.add("Reshape", node.input[0], write.integers(*planes, size))
    largest = write.add("ArgMax", write.add("Gather", plane, write.constant(windows), axis=2), axis=2, keepdims=0)
    row = write.add("Mul", largest, write.integers(windows.shape[1]))
    at = write.add("Add", row, write.constant(np.arange(windows.shape[1])))
    begins = np.arange(0, math.prod(planes) * size, size).reshape(*planes, 1)
    places = write.add("Add", write.add("Gather", write.constant(named.ravel()), at), write.constant(begins))
    write.add("Reshape", places, write.integers(*planes, *counts), output=node.output[1])


def _windows(node: Any, extents: tuple[int, ...]) -> tuple[Array, tuple[int, ...]]:
    """Return a pool's windows as columns of places, and how many there are along each axis.

    The first place of a window stands in for each in the padding.
    """
    kernel = attribute_of(node, "kernel_shape", [])
    pads, dilations = padding_of(node, extents, kernel), attribute_of(node, "dilations", [1] * len(kernel))
    strides, widths = strides_and_widths(node, kernel)
    padded = np.pad(np.arange(math.prod(extents)).reshape(extents), np.reshape(pads, (2, -1)).T, constant_values=-1)
    every = np.lib.stride_tricks.sliding_window_view(padded, widths)
    every = every[tuple(slice(None, None, step) for step in (*strides, *dilations))]
    columns = every.reshape(-1, math.prod(kernel)).T
    first = np.take_along_axis(columns, (columns >= 0).argmax(0)[None], 0)
    return np.where(columns < 0, first, columns), every.shape[: len(kernel)]


@replacing("unpool", "wrote {} as ScatterElements", "MaxUnpool")
def write_unpools(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Scatter the numbers of a MaxUnpool to their places in a tensor of zeros."""
    kind, size = view.kind(node.input[0]), view.constant(node, 2)
    shape = view.shape(node.output[0]) if size is None else tuple(size.tolist())
    if kind is None or shape is None or opset_of(view.model) < 11:
        return False
    zero = write.constant(np.zeros((), helper.tensor_dtype_to_np_dtype(kind.elem_type)))
    zeros = write.add("Expand", zero, write.integers(math.prod(shape)))
    numbers, places = (write.add("Reshape", name, write.integers(-1)) for name in node.input[:2])
    whole = write.add("ScatterElements", zeros, places, numbers)
    write.add("Reshape", whole, write.integers(*shape), output=node.output[0])
    return True


@replacing("fold", "wrote {} as transposed convolutions", "Col2Im")
def write_folds(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Add up the columns of a Col2Im by a transposed convolution, each of whose channels has a one at its own place."""
    kind, shape = view.kind(node.input[0]), view.shape(node.input[0])
    size, block = view.constant(node, 1), view.constant(node, 2)
    if kind is None or shape is None or size is None or block is None:
        return False
    strides, widths = strides_and_widths(node, block.tolist())
    pads = attribute_of(node, "pads", [0] * 2 * block.size)
    steps, left = np.divmod(size + np.reshape(pads, (2, -1)).sum(0) - widths, strides)
    places = int(block.prod())
    columns = write.add("Reshape", node.input[0], write.integers(-1, places, *(steps + 1).tolist()))
    ones = np.eye(places, dtype=helper.tensor_dtype_to_np_dtype(kind.elem_type)).reshape(places, 1, *block)
    how = {"strides": strides, "dilations": attribute_of(node, "dilations", [1] * block.size), "pads": pads}
    image = write.add("ConvTranspose", columns, write.constant(ones), output_padding=left.tolist(), **how)
    write.add("Reshape", image, write.integers(shape[0], -1, *size.tolist()), output=node.output[0])
    return True


def cut(write: NodeWriter, tensor: str, place: int, axis: int, opset: int, output: str = "") -> str:
    """Write one place along an axis, without the axis."""
    return along(write, "Squeeze", write.slice(tensor, place, place + 1, axis), axis, opset, output)


def along(write: NodeWriter, operator: str, tensor: str, axis: int, opset: int, output: str = "") -> str:
    """Write an operator that adds or removes an axis."""
    if opset >= AXES_ARE_INPUTS:
        return write.add(operator, tensor, write.integers(axis), output=output)
    return write.add(operator, tensor, axes=[axis], output=output)
