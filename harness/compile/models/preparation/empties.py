"""Inputs without elements, which stand for nothing: a Resize's empty scales next to its sizes, a part of a Concat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from device_runner.device import Array
from harness.base.tables import counted
from harness.compile.models.outline import NetworkView, is_onnx, opset_of
from harness.compile.models.preparation.editing import NodeWriter

SCALES, SIZES = 2, 3
"""Places of a Resize's inputs. TVM's importer stops if it has both."""
MAY_LACK_SCALES = 13
"""First operator set in which a Resize may leave out its scales."""


def leave_out_empties(model: Any) -> str:
    """Leave out empty parts of a Concat, and empty scales or sizes of a Resize."""
    view, write, count = NetworkView(model), NodeWriter(model, "scales"), 0
    for node in model.graph.node:
        if is_onnx(node, "Concat"):
            count += _leave_out_parts(node, view)
        elif is_onnx(node, "Resize") and len(node.input) > SIZES and all(node.input[SCALES:]):
            count += _leave_out_scales_or_sizes(node, view, write, opset_of(model))
    return f"left out {counted(count, 'empty input')}" if count else ""


def _leave_out_parts(node: Any, view: NetworkView) -> int:
    """Return how many inputs of a Concat are left out; what is empty as a whole stays."""
    names = [name for name in node.input if not _is_empty(view.shape(name))]
    count = len(node.input) - len(names)
    if names and count:
        node.input[:] = names
        return count
    return 0


def _leave_out_scales_or_sizes(node: Any, view: NetworkView, write: NodeWriter, opset: int) -> int:
    """Return how many inputs of a Resize are left out."""
    shape, sizes = view.shape(node.input[0]), view.constant(node, SIZES)
    if _is_empty(view.shape(node.input[SIZES])):
        del node.input[SIZES:]
    elif not _is_empty(view.shape(node.input[SCALES])):
        return 0
    elif opset >= MAY_LACK_SCALES:
        node.input[SCALES] = ""
    elif shape and sizes is not None:
        node.input[SCALES] = write.constant(scales_of(shape, sizes))
        del node.input[SIZES:]
    else:
        return 0
    return 1


def scales_of(shape: Sequence[int] | Array, sizes: Array) -> Array:
    """Return the smallest scales that give these sizes, which are rounded down."""
    exact = sizes / np.array(shape, np.float64)
    scales = exact.astype(np.float32)
    larger: Array = np.nextafter(scales, np.float32(np.inf))
    return np.where(scales < exact, larger, scales)


def _is_empty(shape: tuple[int, ...] | None) -> bool:
    return shape is not None and math.prod(shape) == 0
