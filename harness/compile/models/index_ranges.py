"""What the integer inputs of a network may hold: those that index a table, as far as the graph says.

An input is followed to the operators that index by it, through operators that hand on every element as it is. An input
that is computed with on the way, or a table whose shape is not static, says nothing here: then onnxruntime's refusal
is the answer. Ranges are those of ONNX's operator definitions: an index of an axis of `n` elements is -n to n - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from device_runner.device import Array
from harness.base.failures import ModelError
from harness.base.model import Distribution
from harness.compile.models.onnx_inputs import inputs_of
from harness.compile.models.outline import NetworkView, attribute_of, is_onnx, kind_of, node_name, operand
from harness.compile.models.spec import Inputs

Shape = tuple[int, ...]

SAME_PLACE = ("Identity", "Cast")
"""Operators that leave every element where it is."""
OTHER_PLACE = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Tile", "Concat")
"""Operators that hand on every element, at another place."""


@dataclass(frozen=True)
class IndexRange:
    """What an operator takes of one input: indices of an axis, or of one axis for each column of the last axis."""

    input: str
    operator: str
    """Kind and name of the operator."""
    extents: Shape
    """Elements of the axis that is indexed; one for each column of the input where the columns differ."""
    strict: bool
    """Whether ONNX forbids all else. OneHot gives an index outside its depth the `off` value."""

    @property
    def usual(self) -> Distribution:
        """How such an input is drawn: from the whole axis, the smallest where the columns differ."""
        return Distribution("integers", (0.0, float(min(self.extents) - 1)))

    def error(self, problem: str, extent: int) -> ModelError:
        """Return the error that an input exceeds an axis, with what to give instead."""
        in_suite = f'inputs = {{ "{self.input}" = "{self.usual}" }}'
        return ModelError(
            f"{problem}, but {self.operator} takes {-extent} to {extent - 1} (an axis of {extent} elements)",
            hint=f"pass --input '{self.input}={self.usual}', or in the suite {in_suite}",
        )


def require_drawn_in_range(inputs: Inputs, ranges: Iterable[IndexRange]) -> None:
    """Raise ModelError if an input is drawn from what an operator forbids."""
    for index in ranges:
        if index.strict and (drawn := inputs.get(index.input)):
            extent = min(index.extents)
            if not -extent <= min(drawn.arguments) <= max(drawn.arguments) < extent:
                raise index.error(f"the input {index.input!r} is drawn from {drawn}", extent)


def require_in_range(arrays: Mapping[str, Array], ranges: Iterable[IndexRange], file: Path) -> None:
    """Raise ModelError if the arrays of a file hold what an operator forbids."""
    for index in ranges:
        array, extents = arrays[index.input], np.array(index.extents)
        wrong = np.argwhere((array < -extents) | (array >= extents))
        if index.strict and len(wrong):
            place = tuple(map(int, wrong[0]))
            extent = np.broadcast_to(extents, array.shape or (1,))[place or 0]
            raise index.error(f"{file}: {index.input!r} holds {array[place]} at {list(place)}", int(extent))


def index_ranges(model: Any) -> tuple[IndexRange, ...]:
    """Return the ranges of a network's integer inputs, in the order of its operators.

    None where an input indexes nothing.
    """
    integers = [value.name for value in inputs_of(model) if _is_integer(value.type.tensor_type)]
    if not integers:
        return ()
    graph = NetworkView(model)
    followed = {name: _Source(name, same_place=True) for name in integers}
    ranges: list[IndexRange] = []
    for node in model.graph.node:
        ranges += _ranges_at(node, graph, followed)
        if source := _handed_on(node, followed, graph):
            followed[node.output[0]] = source
    return tuple(ranges)


def usual_inputs(ranges: Iterable[IndexRange]) -> Inputs:
    """Return how each input that indexes is drawn: where several operators index by it, within the smallest axis."""
    smallest: dict[str, IndexRange] = {}
    for index in ranges:
        if index.input not in smallest or min(index.extents) < min(smallest[index.input].extents):
            smallest[index.input] = index
    return {name: index.usual for name, index in smallest.items()}


@dataclass(frozen=True)
class _Source:
    """The input that a tensor has its elements from."""

    input: str
    same_place: bool


def _ranges_at(node: Any, graph: NetworkView, followed: Mapping[str, _Source]) -> Iterator[IndexRange]:
    if not is_onnx(node, *_OPERATORS):
        return
    place, extents_of, strict = _OPERATORS[node.op_type]
    source = followed.get(operand(node, place))
    extents = extents_of(node, graph) if source else None
    if not source or not extents or min(extents) < 1:
        return
    if len({*extents}) == 1:
        extents = extents[:1]
    elif not source.same_place:
        return  # which column an element ends in is not known
    yield IndexRange(source.input, f"{kind_of(node)} {node_name(node)}", extents, strict)


def _handed_on(node: Any, followed: Mapping[str, _Source], graph: NetworkView) -> _Source | None:
    """Return the source of a node's elements, if the node only passes them on."""
    sources = [followed[name] for name in node.input if name in followed]
    if len(sources) != 1 or not _is_integer(graph.kind(node.output[0])):
        return None
    (source,) = sources
    if node.op_type in SAME_PLACE:
        return source
    if node.op_type in OTHER_PLACE and (node.op_type == "Concat" or node.input[0] in followed):
        return _Source(source.input, same_place=False)
    return None


def _axis(node: Any, graph: NetworkView) -> Shape | None:
    """Return the axis of the first input that the attribute names, or its first axis."""
    shape = graph.shape(node.input[0])
    axis = attribute_of(node, "axis", 0)
    return (shape[axis],) if shape and -len(shape) <= axis < len(shape) else None


def _leading_axes(node: Any, graph: NetworkView) -> Shape | None:
    """Return an axis of the first input for each column of the indices, after those of the batch."""
    shape, indices = graph.shape(node.input[0]), graph.shape(node.input[1])
    if not shape or not indices:
        return None
    batch = attribute_of(node, "batch_dims", 0)
    return shape[batch : batch + indices[-1]]


def _rank(node: Any, graph: NetworkView) -> Shape | None:
    shape = graph.shape(node.input[0])
    return (len(shape),) if shape else None


def _depth(node: Any, graph: NetworkView) -> Shape | None:
    depth = graph.constant(node, 1)
    return (int(depth.flat[0]),) if depth is not None and depth.size == 1 else None


def _boxes(node: Any, graph: NetworkView) -> Shape | None:
    """Return how many boxes may be asked for: none to all."""
    shape = graph.shape(node.input[0])
    return (shape[1] + 1,) if shape and len(shape) == 3 else None


_OPERATORS: Mapping[str, tuple[int, Callable[[Any, NetworkView], Shape | None], bool]] = {
    "Gather": (1, _axis, True),
    "GatherElements": (1, _axis, True),
    "GatherND": (1, _leading_axes, True),
    "Scatter": (1, _axis, True),
    "ScatterElements": (1, _axis, True),
    "ScatterND": (1, _leading_axes, True),
    "RoiAlign": (2, _axis, True),
    "Slice": (3, _rank, True),
    "OneHot": (0, _depth, False),
    "NonMaxSuppression": (2, _boxes, False),
}
"""For each operator: the input that indexes, the input that it indexes, and whether ONNX forbids other values."""


def _is_integer(kind: Any | None) -> bool:
    import onnx

    try:
        return kind is not None and onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).kind in "iu"
    except KeyError:
        return False
