"""What depends on no input, computed beforehand by ONNX's own definition of its operators."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from harness.base.tables import counted
from harness.compile.models.outline import all_nodes, attribute_of, constant_of, is_onnx, static_shape, tensor_types
from harness.compile.models.preparation.editing import drop, set_attribute

LARGEST_GROWTH_BYTES = 1 << 20
"""A result larger than this and than what it is made of is cheaper computed than stored."""
SMALL_BYTES = 1 << 12
"""Constants so small that no operator of them, unless it is of those that grow, makes more than some megabytes."""
WINDOWS = ("BlackmanWindow", "HammingWindow", "HannWindow")
GROWING = frozenset(("ConstantOfShape", "Expand", "EyeLike", "OneHot", "Range", "Tile", *WINDOWS))
FOLDABLE = frozenset(
    (
        "Abs", "Acos", "Acosh", "Add", "And", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh", "BitShift",
        "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Compress",
        "Concat", "Cos", "Cosh", "CumSum", "DepthToSpace", "Div", "Einsum", "Elu", "Equal", "Erf", "Exp", "Flatten",
        "Floor", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm", "Greater", "GreaterOrEqual", "HardSigmoid",
        "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "LogSoftmax", "MatMul", "Max", "Mean",
        "Min", "Mish", "Mod", "Mul", "Neg", "NonZero", "Not", "Or", "PRelu", "Pow", "QuantizeLinear", "Reciprocal",
        "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
        "ReduceSum", "ReduceSumSquare", "Relu", "Reshape", "Round", "ScatterElements", "ScatterND", "Selu", "Shape",
        "Sigmoid", "Sign", "Sin", "Sinh", "Size", "Slice", "Softmax", "Softplus", "Softsign", "SpaceToDepth", "Split",
        "Sqrt", "Squeeze", "Sub", "Sum", "Tan", "Tanh", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor", *GROWING,
    )
)  # fmt: skip
"""Operators that take no more time and memory than their operands and results are large: a file of 200 bytes may ask
for a window of 2000 by 2000, or a pad by 2^33 that another one takes back. A network with quantised weights is to stay
one, so they stay. What `BatchNormalization` of operator sets before 14 computes in onnx 1.23 is for training, and its
`ReduceLogSumExp` of -inf is NaN."""


def write_constants(model: Any) -> str:
    """Write numbers of `Constant` operators as tensors, the only form that TVM's importer reads."""
    count = 0
    for node in all_nodes(model.graph):
        if is_onnx(node, "Constant") and constant_of(node) is None and (values := compute(model, node, {})):
            (value,) = values.values()
            if value.dtype.kind in "fi":
                del node.attribute[:]
                set_attribute(node, "value", numpy_helper.from_array(value))
                count += 1
    return f"wrote {counted(count, 'Constant', 'Constant')} as tensors" if count else ""


def fold_constants(model: Any) -> str:
    """Compute what depends on no input, by ONNX's own definition of its operators, and shapes that are known."""
    count = fold(model)
    return f"folded {counted(count, 'operator')} on constants" if count else ""


def fold(model: Any) -> int:
    """Fold until nothing is left to fold, since a result may tell ONNX's inference more shapes; returns how many."""
    count = 0
    while folded := _fold_once(model):
        count += folded
    return count


def _fold_once(model: Any) -> int:
    types, graph = tensor_types(model), model.graph
    values: dict[str, Any] = {tensor.name: tensor for tensor in graph.initializer}
    outputs = {value.name for value in graph.output}
    folded, made = list[Any](), list[Any]()
    for node in graph.node:
        if (value := constant_of(node)) is not None:
            values[node.output[0]] = value
        elif (results := _fold(model, node, values, types)) is not None:
            tensors = [numpy_helper.from_array(array, name) for name, array in results.items()]
            values |= {tensor.name: tensor for tensor in tensors}
            made += tensors
            folded.append(node)
    count = len(folded)
    drop(graph.node, folded)
    for tensor in made:
        if tensor.name in outputs:  # which an operator has to make
            graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], tensor.name, value=tensor))
        else:
            graph.initializer.append(tensor)
    return count


def _fold(model: Any, node: Any, values: dict[str, Any], types: dict[str, Any]) -> dict[str, Any] | None:
    """Results of a node that depends on no input, by name; None for any other, and for what is too large to keep."""
    if not is_onnx(node, *FOLDABLE) or (node.op_type == "Einsum" and len(node.input) > 2):
        return None
    if node.op_type in ("Shape", "Size"):
        shape = static_shape(types.get(node.input[0]))
        return None if shape is None else {node.output[0]: _of_shape(node, shape)}
    if not all(name in values for name in node.input if name):
        return None
    length = sum(_byte_length(types.get(name)) for name in node.output if name)
    if math.isinf(length):  # as of a Concat along axis -1 in sets before 11, where inference knows no such axis
        return compute_small(model, node, values)
    return compute(model, node, values) if length <= max(LARGEST_GROWTH_BYTES, _size_bytes(node, values)) else None


def compute_small(model: Any, node: Any, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Results of a node of small constants, whose own size no inference tells, by name; None for any other."""
    if not is_onnx(node, *FOLDABLE - GROWING) or not all(name in values for name in node.input if name):
        return None
    return compute(model, node, values) if _size_bytes(node, values) <= SMALL_BYTES else None


def _size_bytes(node: Any, values: Mapping[str, Any]) -> int:
    return sum(values[name].ByteSize() for name in node.input if name)


def _of_shape(node: Any, shape: tuple[int, ...]) -> Any:
    """Compute a Shape or a Size. Python clamps a slice's ends as ONNX does."""
    if node.op_type == "Size":
        return np.array(math.prod(shape), np.int64)
    return np.array(shape[attribute_of(node, "start", 0) : attribute_of(node, "end", None)], np.int64)


def _byte_length(kind: Any) -> float:
    """Size of a tensor of this type in bytes; infinite if unknown."""
    shape = static_shape(kind)
    return math.inf if shape is None else 8.0 * math.prod(shape)


def compute(model: Any, node: Any, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Results of a node of constants by ONNX's reference, by name; None where it has none."""
    names = [name for name in node.output if name]
    given = {name: numpy_helper.to_array(values[name]) for name in node.input if name}
    inputs = [helper.make_tensor_value_info(name, values[name].data_type, values[name].dims) for name in given]
    graph = helper.make_graph([node], "constant", inputs, [helper.make_empty_tensor_value_info(name) for name in names])
    single = helper.make_model(graph, opset_imports=model.opset_import, ir_version=8)
    try:
        answers = ReferenceEvaluator(single).run(None, given)
    except Exception:  # whatever cannot be computed here is left to the compiler
        return None
    if not all(isinstance(answer, (np.ndarray, np.generic)) for answer in answers):
        return None
    return {name: np.asarray(answer) for name, answer in zip(names, answers, strict=True)}
