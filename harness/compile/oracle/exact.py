"""Numbers that no rounding moves: whole ones that come of whole ones by sums, products and choices.

The mask of an attention is `(1 - mask) * -10000`, and of many exporters `(1 - mask) * -3.4e38`. Both ones are exact. If
each were moved by itself, their difference times so much would be anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any

import numpy as np
from onnx import TensorProto, numpy_helper

from device_runner.device import Array
from harness.compile.models.outline import Types, constants, inner_graphs, is_onnx
from harness.compile.oracle.judge import Values
from harness.compile.oracle.operands import SELECTING

LARGEST = 2.0**24
"""Largest number up to which float32 has all whole ones."""
_SUMS = ("Sum", "ReduceSum", "CumSum")
_KEEP_WHOLE = (*SELECTING, *_SUMS, "Add", "Sub", "Mul", "Neg", "Abs", "Cast", "Sign", "Trilu", "Range")
"""Operators whose results are whole numbers if all their operands are."""


def keeps_whole(node: Any, exact: Set[str]) -> bool:
    """Return whether a node computes whole numbers of whole numbers."""
    return is_onnx(node, *_KEEP_WHOLE) and all(name in exact for name in node.input if name)


def exact_tensors(model: Any, types: Types, inputs: Values) -> set[str]:
    """Return the tensors that have whole numbers, whatever the operators before them round."""
    floats = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, TensorProto.BFLOAT16)
    exact = {name for name, kind in types.items() if kind.elem_type not in floats}
    exact |= {name for name, array in inputs.items() if _is_whole(array)}
    exact |= {name for name, tensor in constants(model).items() if _is_whole(numpy_helper.to_array(tensor))}
    for node in _nodes(model.graph):
        if keeps_whole(node, exact):
            exact |= {name for name in node.output if name}
    return exact


def _nodes(graph: Any) -> Iterator[Any]:
    """Yield the nodes of a graph and of those inside them, in the order in which they are computed."""
    for node in graph.node:
        for inner in inner_graphs(node):
            yield from _nodes(inner)
        yield node


def _is_whole(array: Array) -> bool:
    """Return whether an array has whole numbers alone, or infinities; a look at the first settles most."""
    if array.dtype.kind != "f":
        return True
    for numbers in (array.ravel()[:16], array):
        wide = numbers.astype(np.float64)
        if not bool((np.isinf(wide) | ((np.abs(wide) <= LARGEST) & (wide == np.rint(wide)))).all()):
            return False
    return True
