"""Quantised operators, most of them of onnxruntime's optimiser, in ONNX's own: dequantise, compute, quantise.

Source: https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md. Those operators take and give 8
bits; onnxruntime computes them in float32 as well, and may round a tie the other way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from harness.compile.models.outline import NetworkView, attribute_of, kind_of
from harness.compile.models.preparation.constants import compute
from harness.compile.models.preparation.editing import NodeWriter, describe, replacing, rewrite

DOMAIN = "com.microsoft."
FLOAT = ("Add", "Mul", "Sigmoid", "LeakyRelu", "AveragePool", "GlobalAveragePool", "Concat", "Softmax", "MatMul")
FLOAT_OPERATORS = {f"QLinear{operator}": operator for operator in FLOAT}
"""The operator of real numbers that each computes."""
_BELOW_8_BITS = ("INT4", "UINT4", "INT2", "UINT2", "FLOAT4E2M1")
NARROW = [value for name, value in TensorProto.DataType.items() if name in _BELOW_8_BITS]
"""Those of them that this release of ONNX has."""
PRODUCTS = ("DequantizeLinear", "MatMulInteger", "ConvInteger", "Mul")
"""What reads numbers less their zero point, or their scale."""
OWN_ATTRIBUTES = ("channels_last", "opset")
"""Attributes that the operators of real numbers have not."""


@replacing("quantised", "wrote {} between DequantizeLinear and QuantizeLinear")
def write_quantised_as_floats(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Write onnxruntime's quantised operators between DequantizeLinear and QuantizeLinear.

    So are products of two computed matrices, as in an attention. The scale and zero point of the result come last;
    those of a Concat come first.
    """
    operator = FLOAT_OPERATORS.get(kind_of(node).removeprefix(DOMAIN))
    if operator is None or attribute_of(node, "channels_last", 0):
        return False
    if operator == "MatMul" and node.input[3] in view.constants:  # written as a product of the same integers
        return False
    inputs = [*node.input[2:], *node.input[:2]] if operator == "Concat" else list(node.input)
    count = max(len(inputs) - 1, 1) // 3  # a zero point may be left out
    sources = [inputs[3 * place : 3 * place + 3] for place in range(count)]
    values = [write.add("DequantizeLinear", *filter(None, source)) for source in sources]
    attributes = {a.name: attribute_of(node, a.name, None) for a in node.attribute if a.name not in OWN_ATTRIBUTES}
    value = write.add(operator, *values, **attributes)
    write.add("QuantizeLinear", value, *filter(None, inputs[3 * count :]), output=node.output[0])
    return True


@replacing("dequantised", "computed {} of constants of fewer than 8 bits", "DequantizeLinear")
def dequantise_weights(node: Any, view: NetworkView, _write: NodeWriter) -> bool:
    """Compute DequantizeLinear of constants in fewer than 8 bits, two of which TVM's importer takes for one byte."""
    values = view.constants
    if not all(name in values for name in node.input if name) or values[node.input[0]].data_type not in NARROW:
        return False
    results = compute(view.model, node, values)
    if results is not None:
        view.model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in results.items())
    return results is not None


def quantise_zeros(model: Any) -> str:
    """Give a tensor of zeros the scale 1 and the zero point 0, as onnxruntime does, unless only products read it.

    ONNX divides 0 by 0 there. In a product nothing comes of it: numbers less their zero point are 0.
    """
    seen = {value.name for value in model.graph.output}
    seen.update(name for node in model.graph.node if node.op_type not in PRODUCTS for name in node.input)

    def choose(node: Any, _view: NetworkView, write: NodeWriter) -> bool:
        if seen.isdisjoint(node.output):
            return False
        names = [write.name() for _ in node.output]
        write.nodes.append(helper.make_node(node.op_type, node.input, names, names[0]))
        flat = write.add("Equal", names[1], write.constant(np.zeros((), np.float32)))
        for name, output, number in zip(names, node.output, (np.uint8(0), np.float32(1), np.uint8(0)), strict=True):
            write.add("Where", flat, write.constant(np.array(number)), name, output=output)
        return True

    return describe("chose the scale of zeros for {}", rewrite(model, "zeros", choose, "DynamicQuantizeLinear"))
