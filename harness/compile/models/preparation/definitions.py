"""Operators that TVM's importer does not read, or reads as another domain's, by what ONNX defines them to be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from harness.compile.models.outline import NetworkView, attribute_of, static_shape, tensor_types
from harness.compile.models.preparation.editing import NodeWriter, is_onnx, replace_nodes
from harness.compile.models.preparation.opset import opset_of

DEFINED = (
    *("Attention", "Celu", "CenterCropPad", "GroupNormalization", "NegativeLogLikelihoodLoss", "RotaryEmbedding"),
    *("SoftmaxCrossEntropyLoss", "Swish"),
)
"""Operators with a definition in ONNX's other operators. TVM takes `Attention` for that of onnxruntime's domain."""
IMAGE_NORM = "RMSNormalization"
"""Of an image, TVM takes it over all axes or in a layout of channels by four for one over the last."""
SMALLEST_NORM = 1.1754944e-38
"""Smallest normal float32: a vector of zeros is divided by it, and stays one, as in onnxruntime."""


def write_definitions(model: Any) -> str:
    """Write operators as ONNX defines them."""
    defined = (*DEFINED, IMAGE_NORM) if _normalizes_images(model) else DEFINED
    kinds = Counter(node.op_type for node in model.graph.node if is_onnx(node, *defined))
    if kinds and not inline(model, defined):
        kinds.clear()
    kinds += Counter(node.op_type for node in replace_nodes(model.graph, _Norms(model), "LpNormalization"))
    text = " and ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"wrote {text} as ONNX defines them" if kinds else ""


def _normalizes_images(model: Any) -> bool:
    nodes = [node for node in model.graph.node if is_onnx(node, IMAGE_NORM)]
    view = NetworkView(model) if nodes else None
    return view is not None and any(len(view.shape(node.input[0]) or ()) == 4 for node in nodes)


def inline(model: Any, kinds: Sequence[str]) -> bool:
    """Return whether ONNX's inliner could write all of these kinds, which it cannot where a type is unknown."""
    from onnx import inliner

    typed = type(model)()
    typed.CopyFrom(model)
    _note_types(typed)
    try:
        whole = inliner.inline_selected_functions(typed, [("", kind) for kind in kinds], inline_schema_functions=True)
    except RuntimeError:
        return False
    del model.graph.node[:]
    model.graph.node.extend(whole.graph.node)
    return True


def _note_types(model: Any) -> None:
    """Note the types of all tensors, which the inliner asks for and of weights does not know."""
    from onnx import TensorProto, helper

    graph = model.graph
    listed = {value.name for value in (*graph.input, *graph.output, *graph.value_info)}
    for name, kind in tensor_types(model).items():
        if name not in listed and kind.elem_type:
            graph.value_info.append(helper.make_tensor_value_info(name, kind.elem_type, static_shape(kind)))
    graph.value_info.append(helper.make_tensor_value_info("", TensorProto.FLOAT, None))  # of operands that are left out


class _Norms:
    """Writes a vector divided by its norm."""

    def __init__(self, model: Any) -> None:
        self._write, self._view, self._opset = NodeWriter(model, "norm"), NetworkView(model), opset_of(model)

    def __call__(self, node: Any) -> list[Any] | None:
        import numpy as np
        from onnx import TensorProto

        kind = self._view.kind(node.input[0])
        if kind is None or kind.elem_type != TensorProto.FLOAT:
            return None
        write, axis = self._write, attribute_of(node, "axis", -1)
        reduction = f"ReduceL{attribute_of(node, 'p', 2)}"
        if self._opset >= 18:
            norm = write.add(reduction, node.input[0], write.integers(axis))
        else:
            norm = write.add(reduction, node.input[0], axes=[axis])
        divisor = write.add("Max", norm, write.constant(np.array(SMALLEST_NORM, np.float32)))
        write.add("Div", node.input[0], divisor, output=node.output[0])
        return write.take()
