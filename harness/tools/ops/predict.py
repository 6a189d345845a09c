"""Which operators of an ONNX network each path can take, as far as its graph tells before anything is built.

What the compiler makes of them in the end, and why it left some out, a build says (`adreno-bench build`).
"""

from __future__ import annotations

from collections.abc import Collection

from harness.compile.models.outline import attribute_of
from harness.tools.ops.summary import Node

SAME_SHAPE = ("Add", "Sub", "Mul", "Div", "Max", "Min")
"""Offloaded to CLML if both operands have one shape and a batch of one (`_check_binary_op` of TVM's pattern table)."""
WINDOWS = ("MaxPool", "AveragePool", "GlobalAveragePool")
ALWAYS = ("Relu", "Softmax", "Reshape", "Flatten")
TEXEL = 4
"""Channels of a texel."""
REAL = ("float32", "float16")
CLML_WEIGHTED = ("Conv", "ConvTranspose", "BatchNormalization")
DEPENDENT = {"texture": ("Conv",), "clml": (*CLML_WEIGHTED, *SAME_SHAPE, *WINDOWS)}
"""Operators that a path takes or leaves by their shapes."""


def destination_of(path: str, node: Node, operators: Collection[str]) -> str:
    """Predict the place of an operator on a path: `kernel`, `image`, `clml`, or `no` if it is not among `operators`.

    `image` says that the convolution itself is laid out for images; what stands around it may follow. `unknown` says
    that it depends on a shape that is open.
    """
    if node.proto.op_type not in operators:
        return "no"
    if node.kind in DEPENDENT.get(path, ()) and _is_open(node):
        return "unknown"
    if path == "texture" and _fills_texels(node):
        return "image"
    return "clml" if path == "clml" and _goes_to_clml(node) else "kernel"


def _fills_texels(node: Node) -> bool:
    """Return whether it is a 2D convolution in one group whose channels fill whole texels; TVM leaves others.

    In several groups its image schedules would divide by zero (`grouped-conv-nchw4c`).
    """
    if node.kind != "Conv" or _rank(node) != 4 or attribute_of(node.proto, "group", 1) != 1:
        return False
    ends = (node.inputs[0], node.outputs[0] if node.outputs else None)
    return all(shape is not None and shape[1] % TEXEL == 0 for shape in ends)


def _goes_to_clml(node: Node) -> bool:
    """Return whether TVM's pattern table for CLML, and our vetoes of what its runtime refuses, leave it to CLML."""
    if node.dtype not in REAL:
        return False
    if node.kind in CLML_WEIGHTED:
        return _rank(node) == 4 and attribute_of(node.proto, "group", 1) == 1
    if node.kind in SAME_SHAPE:
        shapes = {*node.inputs}
        first = node.inputs[0]
        return len(node.inputs) == 2 and len(shapes) == 1 and bool(first) and first is not None and first[0] == 1
    return node.kind in ALWAYS or (node.kind in WINDOWS and _rank(node) == 4)


def _is_open(node: Node) -> bool:
    """Return whether a shape around it is not known; optional ends that are left out have none."""
    shapes = (*zip(node.proto.input, node.inputs, strict=True), *zip(node.proto.output, node.outputs, strict=True))
    return any(shape is None for name, shape in shapes if name)


def _rank(node: Node) -> int:
    return len(node.inputs[0]) if node.inputs and node.inputs[0] is not None else 0
