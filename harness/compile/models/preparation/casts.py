"""Number formats that TVM's importer does not take as they are: casts of floats to 32 bits, exponents, and halves.

Of such a cast the importer writes the remainder of 2^32 and two choices, nested in whatever is fused with them. Its
simplifier takes minutes for a comparison of the result. It casts integers as C does, which keeps the same 32 bits. And
ONNX's Pow takes an exponent of any number format, the importer only its base's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import TensorProto

from harness.base.tables import counted
from harness.compile.models.outline import NetworkView, attribute_of
from harness.compile.models.preparation.editing import NodeWriter, is_onnx, replace_nodes, replacing

FLOATS = (1, 10, 11)
"""ONNX's numbers of float32, float16 and float64."""
IN_SINGLE = (
    *("BatchNormalization", "Celu", "Clip", "DFT", "Elu", "GridSample", "LRN", "LpNormalization"),
    *("MeanVarianceNormalization", "RoiAlign", "STFT", "Selu", "ThresholdedRelu"),
)
"""Operators that the importer, TVM's legalisation or the steps behind this one write in float32, whatever their number
format is, so that the next convolution has halves on one side alone. Of Clip those with other bounds, as before set 11.
`FoldBatchnormToConv2D`, of the path clml, raises at a variance of halves, to which it adds a float32 epsilon."""


@replacing("cast", lambda count: f"wrote {counted(count, 'Cast', 'Cast')} of floats by way of int64", "Cast")
def write_casts(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Cast floats to int64, and that to int32 or uint32."""
    wanted = attribute_of(node, "to", 0)
    kind = view.kind(node.input[0]) if wanted in (TensorProto.INT32, TensorProto.UINT32) else None
    if kind is None or kind.elem_type not in FLOATS:
        return False
    whole = write.add("Cast", node.input[0], to=TensorProto.INT64)
    write.add("Cast", whole, to=wanted, output=node.output[0])
    return True


def look_before_casts(model: Any) -> str:
    """Let IsInf and IsNaN read what is cast to float64 for them, as torch's exporter does: no Adreno has float64."""
    view, write = NetworkView(model), NodeWriter(model, "single")
    sources = {node.output[0]: node.input[0] for node in model.graph.node if is_onnx(node, "Cast")}

    def tested(node: Any) -> list[Any] | None:
        name = sources.get(node.input[0], "")
        given, read = (getattr(view.kind(each), "elem_type", 0) for each in (name, node.input[0]))
        if read != TensorProto.DOUBLE or given not in (TensorProto.FLOAT, TensorProto.FLOAT16):
            return None
        node.input[0] = name if given == TensorProto.FLOAT else write.add("Cast", name, to=TensorProto.FLOAT)
        return [*write.take(), node]

    count = len(replace_nodes(model.graph, tested, "IsInf", "IsNaN"))
    return f"took {counted(count, 'test')} for infinities or NaN before a cast to float64" if count else ""


@replacing("exponent", lambda count: f"wrote the exponents of {count} Pow in the number format of their bases", "Pow")
def write_exponents_as_floats(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Give exponents the number format of the floats that are raised to them."""
    base, exponent = (getattr(view.kind(name), "elem_type", 0) for name in node.input)
    if exponent in (0, base) or base not in FLOATS:
        return False
    node.input[1] = write.add("Cast", node.input[1], to=base)
    write.nodes.append(node)
    return True


def compute_in_single(model: Any, kinds: Sequence[str] = IN_SINGLE) -> str:
    """Let operators of half precision compute in float32 where a part of them would be float32 anyway."""
    view, write = NetworkView(model), NodeWriter(model, "single")

    def in_single(node: Any) -> list[Any] | None:
        halves = [getattr(view.kind(name), "elem_type", 0) == TensorProto.FLOAT16 for name in node.input]
        bounds_fit = not node.attribute and all(half for half, name in zip(halves, node.input, strict=True) if name)
        if not halves[0] or node.output[1:] or (node.op_type == "Clip" and bounds_fit):
            return None
        for place, name in enumerate(node.input):
            node.input[place] = write.add("Cast", name, to=TensorProto.FLOAT) if halves[place] else name
        write.nodes.append(node)
        if getattr(view.kind(node.output[0]), "elem_type", TensorProto.FLOAT16) == TensorProto.FLOAT16:
            half, node.output[0] = node.output[0], write.name()
            write.add("Cast", node.output[0], to=TensorProto.FLOAT16, output=half)
        return write.take()

    count = len(replace_nodes(model.graph, in_single, *kinds))
    return f"computed {counted(count, 'operator')} of half precision in float32" if count else ""
