"""Which operands of an operator are numbers that rounding moves, and which operators decide something.

The rest are parameters by nature: exponents, bounds, scales, sizes, axes, zero points. An answer that is off by a
rounding has the same ones. Operators that are not in `DATA` compute with all their operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnx import TensorProto

from harness.compile.models.outline import attribute_of, is_onnx

FIRST, NONE = (0,), ()

DATA: Mapping[str, tuple[int, ...]] = {
    "Pow": FIRST,  # (-3)^2.0000002 is NaN
    "Clip": FIRST,  # bounds
    "Pad": FIRST,  # the value around it
    **dict.fromkeys(("Resize", "Upsample"), FIRST),  # regions and scales
    "TopK": FIRST,
    "CumSum": FIRST,
    "Dropout": FIRST,  # a ratio
    **dict.fromkeys(("RoiAlign", "MaxRoiPool", "GridSample"), FIRST),  # places
    **dict.fromkeys(("Range", "OneHot"), NONE),  # one more element, or one less
    **dict.fromkeys(("EyeLike", "Shape", "Size", "ConstantOfShape", "MelWeightMatrix", "Cast", "CastLike"), NONE),
    **dict.fromkeys(("DequantizeLinear", "QLinearConv", "QLinearMatMul"), NONE),  # scales
    **dict.fromkeys(("RandomUniformLike", "RandomNormalLike", "Bernoulli", "Multinomial"), NONE),
}
"""Places of the operands that are numbers, by operator."""

COMPARING = ("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual")

COMPARED: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("Floor", "Ceil", "Round", "Sign", "QuantizeLinear", "DynamicQuantizeLinear"), FIRST),
    **dict.fromkeys(("ArgMax", "ArgMin", "Hardmax", "NonZero", "IsNaN", "IsInf", "Unique", "OneHot"), FIRST),
    **dict.fromkeys(COMPARING, (0, 1)),
    **dict.fromkeys(("Mod", "NonMaxSuppression"), (0, 1)),
}
"""Operators that decide: a rounding before them changes nothing, or makes a step. The places of what they compare."""

SELECTING = (
    *("Max", "Min", "ReduceMax", "ReduceMin", "MaxPool", "GlobalMaxPool", "TopK", "Where", "Identity", "Relu", "Clip"),
    *("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Expand", "Tile", "Concat", "Split", "Slice", "Pad"),
    *("Gather", "GatherElements", "GatherND"),
)
"""Operators whose results are some of their operands' numbers, as they are."""

CHOOSING = ("ArgMax", "ArgMin", "MaxPool", "TopK", "Hardmax", "NonZero", "Unique", "NonMaxSuppression")
"""Operators that answer where something is. Between two such answers there is no third."""
WITH_PLACES = ("MaxPool", "TopK")
"""Operators whose first result is the largest numbers, and the second their places."""


def data_operands(node: Any) -> Sequence[int]:
    """Return the places of a node's operands that rounding moves."""
    if not is_onnx(node) or node.op_type in COMPARED:
        return NONE
    return DATA.get(node.op_type, range(len(node.input)))


def compared_operands(node: Any) -> Sequence[int]:
    """Return the places of what a node compares; none of a node that computes."""
    if not is_onnx(node):
        return NONE
    if node.op_type in ("Cast", "CastLike"):
        return FIRST if _to_integers(node) else NONE
    if node.op_type in WITH_PLACES:
        return FIRST if node.op_type == "TopK" or any(node.output[1:]) else NONE
    return COMPARED.get(node.op_type, NONE)


def decisions(node: Any) -> list[str]:
    """Return the results of a node that are decided and not computed."""
    if not compared_operands(node):
        return []
    return [name for name in (node.output[1:] if node.op_type in WITH_PLACES else node.output) if name]


def _to_integers(node: Any) -> bool:
    whole = (TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32)
    return attribute_of(node, "to", 0) in (*whole, TensorProto.UINT32, TensorProto.INT64, TensorProto.UINT64)
