"""Quantised operators, most of them of onnxruntime's optimiser, in ONNX's own: dequantise, compute, quantise.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md. Those operators take and give 8
bits; onnxruntime computes them in float32 as well, and may round a tie the other way.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from harness.base.tables import counted
from harness.compile.models.outline import attribute_of, constants, kind_of
from harness.compile.models.preparation.constants import compute
from harness.compile.models.preparation.editing import NodeWriter, replace_nodes

DOMAIN = "com.microsoft."
FLOAT = ("Add", "Mul", "Sigmoid", "LeakyRelu", "AveragePool", "GlobalAveragePool", "Concat", "Softmax", "MatMul")
FLOAT_OPERATORS = {f"QLinear{operator}": operator for operator in FLOAT}
"""The operator of real numbers that each computes."""
NARROW = ("INT4", "UINT4", "INT2", "UINT2", "FLOAT4E2M1")
PRODUCTS = ("DequantizeLinear", "MatMulInteger", "ConvInteger", "Mul")
"""What reads numbers less their zero point, or their scale."""
OWN_ATTRIBUTES = ("channels_last", "opset")
"""Attributes that the operators of real numbers have not."""


def write_quantised_as_floats(model: Any) -> str:
    """Write onnxruntime's quantised operators between DequantizeLinear and QuantizeLinear.

    So are products of two computed matrices, as in an attention.
    """
    writer, known = NodeWriter(model, "quantised"), constants(model)

    def floats_of(node: Any) -> list[Any] | None:
        operator = FLOAT_OPERATORS.get(kind_of(node).removeprefix(DOMAIN))
        if operator is None or attribute_of(node, "channels_last", 0):
            return None
        if operator == "MatMul" and node.input[3] in known:  # written as a product of the same integers
            return None
        _write(node, operator, writer)
        return writer.take()

    kinds = Counter(node.op_type for node in replace_nodes(model.graph, floats_of))
    text = " and ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"wrote {text} between DequantizeLinear and QuantizeLinear" if kinds else ""


def dequantise_weights(model: Any) -> str:
    """Compute DequantizeLinear of constants in fewer than 8 bits, two of which TVM's importer takes for one byte."""
    narrow = [value for name, value in TensorProto.DataType.items() if name in NARROW]
    values = constants(model)

    def computed(node: Any) -> list[Any] | None:
        if not all(name in values for name in node.input if name):
            return None
        results = compute(model, node, values) if values[node.input[0]].data_type in narrow else None
        if results is None:
            return None
        model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in results.items())
        return []

    count = len(replace_nodes(model.graph, computed, "DequantizeLinear"))
    return f"dequantised {counted(count, 'constant')} of fewer than 8 bits" if count else ""


def quantise_zeros(model: Any) -> str:
    """Give a tensor of zeros the scale 1 and the zero point 0, as onnxruntime does, unless only products read it.

    ONNX divides 0 by 0 there. In a product nothing comes of it: numbers less their zero point are 0.
    """
    write, seen = NodeWriter(model, "zeros"), {value.name for value in model.graph.output}
    seen.update(name for node in model.graph.node if node.op_type not in PRODUCTS for name in node.input)

    def chosen(node: Any) -> list[Any] | None:
        if seen.isdisjoint(node.output):
            return None
        names = [write.name() for _ in node.output]
        write.nodes.append(helper.make_node(node.op_type, node.input, names, names[0]))
        flat = write.add("Equal", names[1], write.constant(np.zeros((), np.float32)))
        for name, output, number in zip(names, node.output, (np.uint8(0), np.float32(1), np.uint8(0)), strict=True):
            write.add("Where", flat, write.constant(np.array(number)), name, output=output)
        return write.take()

    count = len(replace_nodes(model.graph, chosen, "DynamicQuantizeLinear"))
    return f"chose the scale of zeros for {count} DynamicQuantizeLinear" if count else ""


def _write(node: Any, operator: str, writer: NodeWriter) -> None:
    """Write one operator. The scale and zero point of the result come last; those of a Concat come first."""
    inputs = [*node.input[2:], *node.input[:2]] if operator == "Concat" else list(node.input)
    count = max(len(inputs) - 1, 1) // 3  # a zero point may be left out
    sources = [inputs[3 * place : 3 * place + 3] for place in range(count)]
    result = inputs[3 * count :]
    values = [writer.add("DequantizeLinear", *filter(None, source)) for source in sources]
    attributes = {a.name: attribute_of(node, a.name, None) for a in node.attribute if a.name not in OWN_ATTRIBUTES}
    value = writer.add(operator, *values, **attributes)
    writer.add("QuantizeLinear", value, *filter(None, result), output=node.output[0])
