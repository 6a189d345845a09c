"""CumSum and CumProd as reductions and TopK as ranks: TVM's pipelines for Adreno have no kernel for any.

The rank of a number is how many come before it: those that are larger, and equal ones at earlier places. Both compare
each place along an axis with each other. A TopK of many places takes the first of each piece, then the first of those,
until they are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from device_runner.device import Array
from harness.compile.models.outline import NetworkView, attribute_of, opset_of
from harness.compile.models.preparation.editing import NodeWriter, replacing
from harness.compile.models.preparation.indices import along

MOST_PLACES = 4096
"""Most places along an axis that are compared with each other: the constant of more pairs would be too large."""
_REDUCTION = 8
"""How many times longer than what is taken of it a piece is: longer ones compare more, shorter ones leave more."""
_SHORTEST_PIECE = 256


@replacing("cumulative_sum", "wrote {} over a triangle", "CumSum", "CumProd")
def write_cumulative_sums(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Sum or multiply, for each place along a known axis, the numbers up to it."""
    opset = opset_of(view.model)
    numbers, kind, axes = node.input[0], view.kind(node.input[0]), view.constant(node, 1)
    shape = view.shape(numbers)
    if kind is None or axes is None or not shape or shape[axis := int(axes.item()) % len(shape)] > MOST_PLACES:
        return False
    places = np.arange(shape[axis])
    later, earlier = places[:, None], places
    if attribute_of(node, "reverse", 0):
        later, earlier = earlier, later
    counts = earlier < later if attribute_of(node, "exclusive", 0) else earlier <= later
    triangle = write.constant(counts.reshape(*counts.shape, *[1] * (len(shape) - axis - 1)))
    product = node.op_type == "CumProd"
    neutral = write.constant(np.array(product, helper.tensor_dtype_to_np_dtype(kind.elem_type)))
    pairs = along(write, "Unsqueeze", numbers, axis, opset)
    chosen = write.add("Where", triangle, pairs, neutral)
    summed = along(write, "ReduceProd" if product else "ReduceSum", chosen, axis + 1, opset)
    along(write, "Squeeze", summed, axis + 1, opset, node.output[0])
    return True


@replacing("top_k", "wrote {} as ranks", "TopK")
def write_top_k(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Count the rank of each number along a known axis, and take those of the first ranks in their order."""
    opset = opset_of(view.model)
    numbers, kind, count = node.input[0], view.kind(node.input[0]), view.constant(node, 1)
    shape = view.shape(numbers)
    if kind is None or count is None or not shape or 0 in shape or not attribute_of(node, "sorted", 1):
        return False
    axis, k = attribute_of(node, "axis", -1) % len(shape), int(count.item())
    if shape[axis] > MOST_PLACES < 2 * k:
        return False
    outputs = node.output[0], node.output[1] if len(node.output) > 1 else ""
    larger = "Greater" if attribute_of(node, "largest", 1) else "Less"
    ranking = _Ranking(write, opset, kind.elem_type, axis, len(shape) - axis - 1, larger)
    places = ""
    while shape[axis] > MOST_PLACES:
        numbers, places, shape = ranking.write_first_of_each(numbers, places, shape, k)
    ranking.write_first(numbers, shape[axis], k, outputs, places and along(write, "Unsqueeze", places, axis, opset))
    return True


@dataclass(frozen=True)
class _Ranking:
    """Writes the first numbers along an axis, and their places, in their order."""

    writer: NodeWriter
    opset: int
    number_format: int
    axis: int
    later_axes: int
    larger: str
    """Operator by which a number comes before another."""

    def write_first_of_each(
        self, numbers: str, places: str, shape: Sequence[int], k: int
    ) -> tuple[str, str, tuple[int, ...]]:
        """Write the first of each piece of the axis, in which equal numbers keep their order.

        Takes and returns the numbers, their places in the whole (none for the whole itself), and their shape.
        """
        before, after = shape[: self.axis], shape[self.axis + 1 :]
        extent = min(MOST_PLACES, max(_REDUCTION * k, _SHORTEST_PIECE))
        count = -(-shape[self.axis] // extent)
        missing, rows = (*before, count * extent - shape[self.axis], *after), (*before, count, extent, *after)
        row = replace(self, axis=self.axis + 1)
        if places:
            places = self._in_rows(places, TensorProto.INT64, 0, missing, rows)
            places = row._along("Unsqueeze", places, row.axis)
        else:
            places = row._column(np.arange(count * extent).reshape(count, 1, extent))
        numbers = self._in_rows(numbers, self.number_format, self._last, missing, rows)
        firsts, shape = row.write_first(numbers, extent, k, places=places), (*before, count * k, *after)
        numbers, places = (self.writer.add("Reshape", each, self.writer.integers(*shape)) for each in firsts)
        return numbers, places, shape

    def _in_rows(
        self, tensor: str, number_format: int, filler: float, missing: Sequence[int], rows: Sequence[int]
    ) -> str:
        """Cut an axis into rows of equal length, the last of which may end in what is missing."""
        if 0 not in missing:
            filled = np.full(missing, filler, helper.tensor_dtype_to_np_dtype(number_format))
            tensor = self.writer.add("Concat", tensor, self.writer.constant(filled), axis=self.axis)
        return self.writer.add("Reshape", tensor, self.writer.integers(*rows))

    @property
    def _last(self) -> float:
        """Number that comes after all others, and, as it stands at the end, after its likes."""
        dtype = helper.tensor_dtype_to_np_dtype(self.number_format)
        ends = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return ends[self.larger == "Less"]

    def write_first(
        self, numbers: str, extent: int, k: int, outputs: tuple[str, str] | None = None, places: str = ""
    ) -> tuple[str, str]:
        """Write the first of `extent` numbers, which may have other places; returns both results' names."""
        add, after = self.writer.add, self.axis + 1
        places_here = np.arange(extent)
        own, others = (self._along("Unsqueeze", numbers, place) for place in (after, self.axis))
        earlier = self._column(places_here < places_here[:, None])
        ties = add("And", add("Equal", others, own), earlier)
        before = add("Or", add(self.larger, others, own), ties)
        rank = self._total(add("Cast", before, to=TensorProto.INT64))
        here = add("Equal", self._along("Unsqueeze", rank, self.axis), self._column(np.arange(k)[:, None]))
        zero = np.zeros((), helper.tensor_dtype_to_np_dtype(self.number_format))
        value_name, place_name = outputs or (self.writer.name(), self.writer.name())
        self._total(add("Where", here, others, self.writer.constant(zero)), value_name)
        if place_name:
            row_places = places or self._column(places_here)
            self._total(add("Where", here, row_places, self.writer.constant(np.zeros((), np.int64))), place_name)
        return value_name, place_name

    def _total(self, pairs: str, output: str = "") -> str:
        summed = self._along("ReduceSum", pairs, self.axis + 1)
        return self._along("Squeeze", summed, self.axis + 1, output)

    def _along(self, operator: str, tensor: str, axis: int, output: str = "") -> str:
        return along(self.writer, operator, tensor, axis, self.opset, output)

    def _column(self, array: Array) -> str:
        """Write a constant whose last axis is the pairs' last one of this axis."""
        return self.writer.constant(array.reshape(*array.shape, *[1] * self.later_axes))
