"""Padding in numbers, where `auto_pad` and `output_shape` leave it to the importer.

For `auto_pad` TVM's importer writes a separate operator, whose fused kernel may take more local memory than a device
has. It leaves `output_shape` out. In an LpPool with `ceil_mode` it scales the last windows up to whole ones. A Pad that
repeats the tensor reads beyond it if it also cuts, or repeats more than there is. Before 0.27 it leaves out a Pad's
axes. A window that is wider than all there is has no result for it, and one for onnxruntime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from harness.base.failures import ModelError
from harness.compile.models.outline import NetworkView, attribute_of, is_onnx, node_name, operand, opset_of
from harness.compile.models.preparation.editing import NodeWriter, describe, replacing, set_attribute

_WRAP_IS_A_MODE = 19
"""First operator set in which a Pad wraps."""
WINDOWS = ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool")


def write_pads(model: Any) -> str:
    """Write the padding of convolutions and pools in numbers, where their shapes are known.

    Raises ModelError for a window that is wider than the padded tensor.
    """
    view = NetworkView(model)
    windows = [node for node in model.graph.node if is_onnx(node, *WINDOWS)]
    return describe("wrote the padding of {} in numbers", [node for node in windows if write_pads_of(node, view)])


def write_pads_of(node: Any, view: NetworkView, rounded: Sequence[str] = ("LpPool",)) -> bool:
    """Return whether a node's padding was not in numbers, and is now; of these operators also that of `ceil_mode`."""
    mode, wanted = attribute_of(node, "auto_pad", "NOTSET"), attribute_of(node, "output_shape", [])
    rounds_up = node.op_type in rounded and attribute_of(node, "ceil_mode", 0)
    shape, weight = view.shape(node.input[0]), view.shape(operand(node, 1))
    kernel = attribute_of(node, "kernel_shape", list(weight[2:]) if weight else [])
    if shape is None or len(kernel) != len(shape) - 2:
        return False
    if node.op_type != "ConvTranspose" and mode in ("NOTSET", "VALID"):
        _require_room(node, shape[2:], kernel)
    if mode == "NOTSET" and not wanted and not rounds_up:
        return False
    pads = [0] * 2 * len(kernel)
    if mode == "NOTSET" and not wanted:
        pads = padding_of(node, shape[2:], kernel)
    elif mode != "VALID":
        if (totals := _totals(node, shape[2:], kernel)) is None:
            return False
        smaller, larger = [total // 2 for total in totals], [total - total // 2 for total in totals]
        pads = smaller + larger if mode == "SAME_UPPER" else larger + smaller
    pads = _rounded_up(node, shape[2:], kernel, pads) if rounds_up else pads
    if rounds_up or mode.startswith("SAME"):
        set_attribute(node, "ceil_mode", None)  # it is about pixels that are left over, and none is
    for name in ("auto_pad", "output_shape"):
        set_attribute(node, name, None)
    set_attribute(node, "pads", pads)
    return True


def _require_room(node: Any, extents: tuple[int, ...], kernel: list[int]) -> None:
    """Raise ModelError unless a window fits into the tensor and its padding."""
    widths, room = strides_and_widths(node, kernel)[1], [*extents]
    for place, pad in enumerate(padding_of(node, extents, kernel)):
        room[place % len(kernel)] += pad
    if 0 not in extents and any(width > extent for width, extent in zip(widths, room, strict=True)):
        text = f"{node.op_type} {node_name(node)!r} has windows of {widths}, and with padding its input has {room}"
        raise ModelError(text, hint="give the network larger inputs, with `--shape NAME=SIZES`, or export it with them")


def padding_of(node: Any, extents: tuple[int, ...], kernel: list[int]) -> list[int]:
    """Return the padding that is in numbers, up to where the last window ends if their number is rounded up."""
    pads = list(attribute_of(node, "pads", [0] * 2 * len(kernel)))
    return _rounded_up(node, extents, kernel, pads) if attribute_of(node, "ceil_mode", 0) else pads


def _rounded_up(node: Any, extents: tuple[int, ...], kernel: list[int], pads: list[int]) -> list[int]:
    """Return the padding in which the last window ends, unless that one would begin in it and is none."""
    begins, ends = pads[: len(kernel)], pads[len(kernel) :]
    for axis, (stride, width) in enumerate(zip(*strides_and_widths(node, kernel), strict=True)):
        end = ends[axis] + (width - begins[axis] - extents[axis] - ends[axis]) % stride
        ends[axis] = end if end < width else ends[axis]
    return begins + ends


def strides_and_widths(node: Any, kernel: list[int]) -> tuple[list[int], list[int]]:
    """Return how far windows are apart along each axis, and how wide they are."""
    strides, dilations = (attribute_of(node, name, [1] * len(kernel)) for name in ("strides", "dilations"))
    return strides, [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]


def _totals(node: Any, extents: tuple[int, ...], kernel: list[int]) -> list[int] | None:
    """Compute the padding of each axis, both ends together; None if it would be negative, which is no padding."""
    strides, widths = strides_and_widths(node, kernel)
    if node.op_type == "ConvTranspose":
        same = [extent * stride for extent, stride in zip(extents, strides, strict=True)]
        wanted = list(attribute_of(node, "output_shape", same))[-len(kernel) :]
        more = attribute_of(node, "output_padding", [0] * len(kernel))
        sizes = zip(extents, strides, more, widths, wanted, strict=True)
        totals = [stride * (extent - 1) + extra + width - end for extent, stride, extra, width, end in sizes]
        return totals if min(totals) >= 0 else None
    rows = zip(extents, strides, widths, strict=True)
    totals = [(-(-extent // stride) - 1) * stride + width - extent for extent, stride, width in rows]
    if node.op_type != "Conv" and min(totals) < -1:
        return None  # onnxruntime's pools then begin at the second pixel
    return [max(total, 0) for total in totals]


@replacing("pad", "wrote {} for all axes", "Pad")
def write_pad_axes(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Write the padding of every axis where a Pad names some."""
    axes, pads, shape = view.constant(node, 3), view.constant(node, 1), view.shape(node.input[0])
    if axes is None or pads is None or shape is None:
        return False
    whole = np.zeros((2, len(shape)), np.int64)
    whole[:, axes] = pads.reshape(2, -1)
    node.input[:] = [node.input[0], write.integers(*whole.ravel().tolist()), *filter(None, node.input[2:3])]
    write.nodes.append(node)
    return True


@replacing("repeats", "wrote {} by index", "Pad")
def write_repeats(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Replace a Pad by Gather if it cuts and repeats, or repeats more than the tensor. onnxruntime misreads those.

    So is one that wraps in an operator set before 19, which has no such mode, as torch 2 exports it.
    """
    mode, shape, pads = attribute_of(node, "mode", "constant"), view.shape(node.input[0]), view.constant(node, 1)
    axes = view.constant(node, 3) if operand(node, 3) else range(len(shape or ()))
    if mode not in ("wrap", "reflect") or shape is None or pads is None or axes is None:
        return False
    ends = zip(axes, *pads.reshape(2, -1).tolist(), strict=True)
    padded = [(axis, begin, end) for axis, begin, end in ends if begin or end]
    defined = mode == "reflect" or opset_of(view.model) >= _WRAP_IS_A_MODE
    if not padded or (defined and all(0 <= begin < shape[axis] > end >= 0 for axis, begin, end in padded)):
        return False
    result = node.input[0]
    for axis, begin, end in padded:
        places = write.integers(*_places(shape[axis], begin, end, mode))
        output = node.output[0] if axis == padded[-1][0] else ""
        result = write.add("Gather", result, places, axis=axis, output=output)
    return True


def _places(extent: int, begin: int, end: int, mode: str) -> list[int]:
    """Return the places along an axis that a Pad gathers, which first cuts and then repeats; -1 cuts one off."""
    kept = np.arange(max(-begin, 0), extent - max(-end, 0))
    places: list[int] = np.pad(kept, (max(begin, 0), max(end, 0)), mode).tolist()  # type: ignore[call-overload]
    return places
