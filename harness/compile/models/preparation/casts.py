"""Number formats that TVM's importer does not take as they are: casts of floats to 32 bits, exponents, and halves.

Before 0.27 it does not know CastLike, of which many of ONNX's definitions are made.

Of such a cast the importer writes the remainder of 2^32 and two choices, nested in whatever is fused with them. Its
simplifier takes minutes for a comparison of the result. It casts integers as C does, which keeps the same 32 bits. And
ONNX's Pow takes an exponent of any number format, the importer only its base's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import TensorProto

from harness.compile.models.outline import NetworkView, attribute_of
from harness.compile.models.preparation.editing import NodeWriter, describe, replacing, rewrite

FLOATS = (1, 10, 11)
"""ONNX's numbers of float32, float16 and float64."""
IN_SINGLE = (
    *("BatchNormalization", "Celu", "Clip", "DFT", "Elu", "GridSample", "LRN", "LpNormalization"),
    *("MeanVarianceNormalization", "RoiAlign", "STFT", "Selu", "ThresholdedRelu"),
)
"""Operators that the importer, TVM's legalisation or the steps behind this one write in float32, whatever their number
format is, so that the next convolution has halves on one side alone. Of Clip those with other bounds, as before set 11.
`FoldBatchnormToConv2D`, of the path clml, raises at a variance of halves, to which it adds a float32 epsilon."""


@replacing("cast", "wrote {} of floats by way of int64", "Cast")
def write_casts(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Cast floats to int64, and that to int32 or uint32."""
    wanted = attribute_of(node, "to", 0)
    if wanted not in (TensorProto.INT32, TensorProto.UINT32) or view.number_format(node.input[0]) not in FLOATS:
        return False
    whole = write.add("Cast", node.input[0], to=TensorProto.INT64)
    write.add("Cast", whole, to=wanted, output=node.output[0])
    return True


@replacing("cast", "wrote {} as Cast", "CastLike")
def write_casts_like(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Name the number format that a CastLike takes of its second input."""
    if wanted := view.number_format(node.input[1]):
        write.add("Cast", node.input[0], to=wanted, output=node.output[0])
    return bool(wanted)


@replacing("single", "took {} before a cast to float64", "IsInf", "IsNaN")
def look_before_casts(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Let IsInf and IsNaN read what is cast to float64 for them, as torch's exporter does: no Adreno has float64."""
    cast = view.maker(node.input[0], "Cast")
    if cast is None or view.number_format(node.input[0]) != TensorProto.DOUBLE:
        return False
    (name,), given = cast.input, view.number_format(cast.input[0])
    if given not in (TensorProto.FLOAT, TensorProto.FLOAT16):
        return False
    node.input[0] = name if given == TensorProto.FLOAT else write.add("Cast", name, to=TensorProto.FLOAT)
    write.nodes.append(node)
    return True


@replacing("exponent", "wrote the exponents of {} in the number format of their bases", "Pow")
def write_exponents_as_floats(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Give exponents the number format of the floats that are raised to them."""
    base, exponent = map(view.number_format, node.input)
    if exponent in (0, base) or base not in FLOATS:
        return False
    node.input[1] = write.add("Cast", node.input[1], to=base)
    write.nodes.append(node)
    return True


def compute_in_single(model: Any, kinds: Sequence[str] = IN_SINGLE) -> str:
    """Let operators of half precision compute in float32 where a part of them would be float32 anyway."""
    return describe("computed {} of half precision in float32", rewrite(model, "single", _write_in_single, *kinds))


def _write_in_single(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    halves = [view.number_format(name) == TensorProto.FLOAT16 for name in node.input]
    bounds_fit = not node.attribute and all(half for half, name in zip(halves, node.input, strict=True) if name)
    if not halves[0] or node.output[1:] or (node.op_type == "Clip" and bounds_fit):
        return False
    for place, name in enumerate(node.input):
        node.input[place] = write.add("Cast", name, to=TensorProto.FLOAT) if halves[place] else name
    write.nodes.append(node)
    if view.number_format(node.output[0]) in (0, TensorProto.FLOAT16):
        half, node.output[0] = node.output[0], write.name()
        write.add("Cast", node.output[0], to=TensorProto.FLOAT16, output=half)
    return True
