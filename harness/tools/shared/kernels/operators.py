"""Operators by kind: what they are called, and which of them make the difference between two profiles.

An operator has the same words on every path, whatever layout it has there.
"""

from __future__ import annotations

import functools
import re
from math import prod
from typing import NamedTuple

from harness.compile.compiler.tir import OperatorWork

_NUMBER = re.compile(r"^(.*?[A-Za-z])\d*$")
_NO_OPERATOR = {"fused", "opencl", "te", "NCHWc", "OIHWo", ""}
WEIGHTED = {"conv2d", "conv2d_transpose", "matmul", "dense"}
"""Operators whose second tensor is their weights, which distinguishes them."""


class OperatorKind(NamedTuple):
    """What makes two operators the same one: what they do first, and how large their tensors are."""

    operator: str
    reads: tuple[int, ...]
    writes: int


@functools.lru_cache(1 << 12)
def operators_in(function: str) -> tuple[str, ...]:
    """Return the operators that were fused into a function, by TVM's names, without TVM's numbers.

    A history asks a hundred thousand times, of some hundred functions.
    """
    words = (_NUMBER.sub(r"\1", word) for word in function.split("_"))
    return tuple(word for word in words if word not in _NO_OPERATOR) or (function,)


def kind_of(function: str, work: OperatorWork | None) -> OperatorKind:
    """Return what the function does, by the sizes of its tensors, which a layout of blocks of four does not change."""
    first = operators_in(function)[0]
    if work is None or not work.shapes:
        return OperatorKind(label_of(function, work), (), 0)
    reads = work.shapes[: 2 if first in WEIGHTED else 1]
    return OperatorKind(first, tuple(map(prod, reads)), prod(work.shapes[-1]))


def label_of(function: str, work: OperatorWork | None) -> str:
    """Return a few words for a table: `conv2d 512x512x3x3 to 512x7x7`; all operators where no size is known."""
    first = operators_in(function)[0]
    if work is None or not work.shapes:
        return "_".join(operators_in(function))
    weights = _unblocked(work.shapes[1], 0) if first in WEIGHTED and len(work.shapes) > 2 else []
    output = _unblocked(work.shapes[-1], 1)
    words = [first, "x".join(map(str, weights)), "to", "x".join(map(str, output[1:] or output))]
    return " ".join(filter(None, words))


def _unblocked(shape: list[int], axis: int) -> list[int]:
    """Return a shape in blocks of four along an axis, which TVM puts last, as if it were not."""
    if len(shape) != 5 or shape[-1] != 4:
        return shape
    return [extent * (4 if place == axis else 1) for place, extent in enumerate(shape[:-1])]
