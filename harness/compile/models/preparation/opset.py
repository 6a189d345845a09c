"""The network in ONNX's own operators, and in a set of them that TVM's importer reads."""

from __future__ import annotations

from typing import Any

from onnx import defs, version_converter

from harness.base.failures import ModelError
from harness.compile.models.number_formats import without_bfloats
from harness.compile.models.onnx_inputs import inputs_of
from harness.compile.models.outline import (
    OLDEST_IR_VERSION,
    NetworkView,
    all_nodes,
    inlined,
    is_onnx,
    node_name,
    opset_of,
    static_shape,
)
from harness.compile.models.preparation.editing import set_attribute

OLDEST_READABLE, OLDEST_OPSET, CONVERTED_TO = 7, 10, 13
"""Before 7, `Add` and its like broadcast by attributes that TVM's importer does not read. Before 10, `Slice` has
attributes in place of inputs, and others differ as well; many networks need none of those. `Resize` of 10 has two
inputs, and TVM's importer reads four."""


def lower_opset(model: Any, version: int) -> bool:
    """Call a network's operator set an older one, if that has all its operators with these attributes, or return False.

    With those and as many inputs they do the same from 21 to 28: newer ones have more of both, and number formats.
    """
    for node in filter(is_onnx, all_nodes(model.graph)):
        if not defs.has(node.op_type, version, ""):
            return False
        older = defs.get_schema(node.op_type, version)
        if len(node.input) > older.max_input or any(field.name not in older.attributes for field in node.attribute):
            return False
    for own in model.opset_import:
        own.version = version if own.domain in ("", "ai.onnx") else own.version
    return True


def inline_functions(model: Any) -> str:
    """Put the bodies of functions in the place of their calls."""
    if count := len(model.functions):
        model.CopyFrom(inlined(model))
    return f"inlined {count} functions" if count else ""


def widen_bfloats(model: Any) -> str:
    """Compute in float32 what is in bfloat16."""
    if (plain := without_bfloats(model)) is model:
        return ""
    model.CopyFrom(plain)
    return "computed bfloat16 in float32"


def convert_opset(model: Any) -> str:
    """Convert an old operator set. Raises `ModelError` if it has to be converted and cannot."""
    version = opset_of(model)
    nodes = [node for node in all_nodes(model.graph) if is_onnx(node)]
    if not nodes or version > OLDEST_OPSET or (version == OLDEST_OPSET and all(n.op_type != "Resize" for n in nodes)):
        return ""
    text = f"the network is in operator set {version}, which ONNX cannot convert"
    hint = f"export it with operator set {CONVERTED_TO}"
    for node in nodes:
        if version < OLDEST_READABLE and {"axis", "broadcast"} <= {attribute.name for attribute in node.attribute}:
            # onnx 1.23 converts it into a network that computes something else.
            raise ModelError(f"{text}: {node.op_type} {node_name(node)!r} broadcasts along an axis", hint=hint)
    model.ir_version = max(model.ir_version, OLDEST_IR_VERSION)  # in older ones the converter wants weights as inputs
    nearest = [_nearest(model, node) for node in nodes if is_onnx(node, "Upsample", "Resize")]
    try:
        converted = version_converter.convert_version(model, CONVERTED_TO)
    except Exception as error:  # the converter raises errors of every kind
        if version >= OLDEST_READABLE:
            return ""
        said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ModelError(f"{text}: {said}", hint=hint) from error
    if _inputs_of(converted) != _inputs_of(model):  # onnx 1.23 takes the batch off what a Scan of set 8 reads
        return ""
    model.CopyFrom(converted)
    for node, mode in zip([n for n in all_nodes(model.graph) if is_onnx(n, "Resize")], nearest, strict=True):
        # onnx 1.23 leaves these to their defaults, by which other pixels are taken, and gives results other names.
        set_attribute(node, "coordinate_transformation_mode", "asymmetric")
        set_attribute(node, "nearest_mode", mode)
    return f"converted operator set {version} to {CONVERTED_TO}"


def _nearest(model: Any, node: Any) -> str:
    """Return which pixel an enlargement takes, or a reduction, as onnxruntime does of operator set 10 and before."""
    scales = NetworkView(model).constant(node, 1)
    return "ceil" if scales is not None and scales.min() < 1 else "floor"


def _inputs_of(model: Any) -> dict[str, tuple[int, ...] | None]:
    """Return the shapes of what a user gives."""
    return {value.name: static_shape(value.type.tensor_type) for value in inputs_of(model)}


def unlist_weights(model: Any) -> str:
    """Take weights off the list of inputs, where old files have them."""
    graph, inputs = model.graph, inputs_of(model)
    if not (count := len(graph.input) - len(inputs)):
        return ""
    del graph.input[:]
    graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, OLDEST_IR_VERSION)
    return f"{count} weights are inputs no longer"
