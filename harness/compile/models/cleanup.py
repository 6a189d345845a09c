"""What an exporter leaves in a network that inference does not need, taken out; each step says what it changed.

The compiler then sees the network that people deploy, and a case is about the compiler's work and not about an
exporter's remains. The answers stay the same. A model with `clean = false` in the suite is left as it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from harness.base.failures import ModelError
from harness.compile.models.outline import (
    OLDEST_IR_VERSION,
    constant_of,
    constants,
    inner_graphs,
    node_name,
    static_shape,
    tensor_types,
)

OLDEST_OPSET, CONVERTED_TO = 7, 13
"""Before 7, `Add` and its like broadcast by attributes that TVM's importer does not read."""
LARGEST_GROWTH_BYTES = 1 << 20
"""A result larger than this and than what it is made of is cheaper computed than stored."""
FOLDABLE = frozenset(
    (
        "Abs", "Acos", "Acosh", "Add", "And", "ArgMax", "ArgMin", "Asin", "Asinh", "Atan", "Atanh", "BitShift",
        "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Ceil", "Celu", "Clip", "Compress",
        "Concat", "ConstantOfShape", "Cos", "Cosh", "CumSum", "DepthToSpace", "Div", "Elu", "Equal", "Erf", "Exp",
        "Expand", "EyeLike", "Flatten", "Floor", "Gather", "GatherElements", "GatherND", "Gelu", "Gemm", "Greater",
        "GreaterOrEqual", "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log",
        "LogSoftmax", "MatMul", "Max", "Mean", "Min", "Mish", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot", "Or",
        "PRelu", "Pow", "QuantizeLinear", "Range", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceLogSum",
        "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
        "Relu", "Reshape", "Round", "ScatterElements", "ScatterND", "Selu", "Shape", "Sigmoid", "Sign", "Sin", "Sinh",
        "Size", "Slice", "Softmax", "Softplus", "Softsign", "SpaceToDepth", "Split", "Sqrt", "Squeeze", "Sub", "Sum",
        "Tan", "Tanh", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor",
    )
)  # fmt: skip
"""Operators that take no more time and memory than their operands and results are large: a file of 200 bytes may ask
for a window of 2000 by 2000, or a pad by 2^33 that another one takes back. A network with quantised weights is to stay
one, so they stay. What `BatchNormalization` of operator sets before 14 computes in onnx 1.23 is for training."""


def clean_up(model: Any) -> list[str]:
    """Change the network in place; returns what was changed, a line for each kind of change. Raises `ModelError`."""
    steps: tuple[Callable[[Any], str], ...] = (
        _inline_functions,
        _convert_opset,
        _unlist_weights,
        _remove_identities,
        _fold_constants,
        _remove_unread,
    )
    return [change for step in steps if (change := step(model))]


def opset_of(model: Any) -> int:
    """Version of ONNX's own operators that the network is written in."""
    return max((int(one.version) for one in model.opset_import if one.domain in ("", "ai.onnx")), default=1)


def _inline_functions(model: Any) -> str:
    from onnx import inliner

    count = len(model.functions)
    if count:
        model.CopyFrom(inliner.inline_local_functions(model))
    return f"inlined {count} functions" if count else ""


def _convert_opset(model: Any) -> str:
    from onnx import version_converter

    found = opset_of(model)
    if found >= OLDEST_OPSET:
        return ""
    text = f"the network is in operator set {found}, which ONNX cannot convert"
    hint = f"export it with operator set {CONVERTED_TO}"
    for node in model.graph.node:
        if {"axis", "broadcast"} <= {attribute.name for attribute in node.attribute}:
            # onnx 1.23 converts it into a network that computes something else.
            raise ModelError(f"{text}: {node.op_type} {node_name(node)!r} broadcasts along an axis", hint=hint)
    try:
        model.CopyFrom(version_converter.convert_version(model, CONVERTED_TO))
    except Exception as error:  # the converter raises errors of every kind
        said = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ModelError(f"{text}: {said}", hint=hint) from error
    return f"converted operator set {found} to {CONVERTED_TO}"


def _unlist_weights(model: Any) -> str:
    graph = model.graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    count = len(graph.input) - len(inputs)
    if not count:
        return ""
    del graph.input[:]
    graph.input.extend(inputs)
    model.ir_version = max(model.ir_version, OLDEST_IR_VERSION)
    return f"{count} weights are inputs no longer"


def _remove_identities(model: Any) -> str:
    """Dropout and Identity. One that leads from an input to an output of the network has to stay."""
    graph = model.graph
    outputs = {value.name for value in graph.output}
    made = {name for node in graph.node for name in node.output}
    read_inside = {name for node in graph.node for name in _reads_inside(node)}
    read = {name for node in graph.node for name in node.input} | outputs | read_inside
    new_name: dict[str, str] = {}
    removed: list[Any] = []
    for node in graph.node:
        if not _passes_through(model, node, read):
            continue
        source, result = new_name.get(node.input[0], node.input[0]), node.output[0]
        if result in read_inside:
            continue
        if result not in outputs:
            new_name[result] = source
        elif source in made and source not in outputs | read_inside:
            # The output keeps its name, so whatever makes it gets that.
            new_name = {old: result if new == source else new for old, new in new_name.items()} | {source: result}
        else:
            continue
        removed.append(node)
    _drop(graph.node, removed)
    for names in (names for node in graph.node for names in (node.input, node.output)):
        for place, name in enumerate(names):
            names[place] = new_name.get(name, name)
    kinds = Counter(node.op_type for node in removed)
    return "removed " + " and ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) if kinds else ""


def _passes_through(model: Any, node: Any, read: set[str]) -> bool:
    if node.domain not in ("", "ai.onnx") or node.op_type not in ("Identity", "Dropout"):
        return False
    mask_is_read = any(name in read for name in node.output[1:] if name)
    return not mask_is_read and not (len(node.input) > 2 and node.input[2] and _is_training(model, node.input[2]))


def _is_training(model: Any, name: str) -> bool:
    """Return whether a dropout's flag may be set: it is not if it is a weight that says so."""
    from onnx import numpy_helper

    flags = constants(model)
    return name not in flags or bool(numpy_helper.to_array(flags[name]).any())


def _reads_inside(node: Any) -> Iterator[str]:
    """Yield names that the graphs inside a node read, also from outside."""
    for graph in inner_graphs(node):
        yield from (value.name for value in graph.output)
        for inner in graph.node:
            yield from inner.input
            yield from _reads_inside(inner)


def _fold_constants(model: Any) -> str:
    """Compute what depends on no input, by ONNX's own definition of its operators, and shapes that are known."""
    from onnx import numpy_helper

    types, graph = tensor_types(model), model.graph
    known: dict[str, Any] = {tensor.name: tensor for tensor in graph.initializer}
    outputs = {value.name for value in graph.output}
    folded: list[Any] = []
    for node in graph.node:
        if (value := constant_of(node)) is not None:
            known[node.output[0]] = value
        elif not outputs & {*node.output} and (found := _fold(model, node, known, types)) is not None:
            made = [numpy_helper.from_array(array, name) for name, array in found.items()]
            known |= {tensor.name: tensor for tensor in made}
            graph.initializer.extend(made)
            folded.append(node)
    _drop(graph.node, folded)
    return f"folded {len(folded)} operators on constants" if folded else ""


def _fold(model: Any, node: Any, known: dict[str, Any], types: dict[str, Any]) -> dict[str, Any] | None:
    """Results of a node that depends on no input, by name; None for any other, and for what is too large to keep."""
    import numpy as np

    if node.domain not in ("", "ai.onnx") or node.op_type not in FOLDABLE:
        return None
    if node.op_type == "Shape" and not node.attribute:
        shape = static_shape(types.get(node.input[0]))
        return None if shape is None else {node.output[0]: np.array(shape, np.int64)}
    names = [name for name in node.output if name]
    if inner_graphs(node) or not all(name in known for name in node.input if name):
        return None
    lengths = [_byte_length(types.get(name)) for name in names]
    most = max(LARGEST_GROWTH_BYTES, sum(known[name].ByteSize() for name in node.input if name))
    return _compute(model, node, names, known) if sum(lengths) <= most else None


def _byte_length(kind: Any) -> float:
    """Size of a tensor of this type in bytes; infinite if unknown."""
    shape = static_shape(kind)
    return math.inf if shape is None else 8.0 * math.prod(shape)


def _compute(model: Any, node: Any, names: list[str], known: dict[str, Any]) -> dict[str, Any] | None:
    import numpy as np
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    given = {name: numpy_helper.to_array(known[name]) for name in node.input if name}
    inputs = [helper.make_tensor_value_info(name, known[name].data_type, known[name].dims) for name in given]
    graph = helper.make_graph([node], "one", inputs, [helper.make_empty_tensor_value_info(name) for name in names])
    one = helper.make_model(graph, opset_imports=model.opset_import, ir_version=8)
    try:
        answers = ReferenceEvaluator(one).run(None, given)
    except Exception:  # whatever cannot be computed here is left to the compiler
        return None
    if not all(isinstance(answer, (np.ndarray, np.generic)) for answer in answers):
        return None
    return {name: np.asarray(answer) for name, answer in zip(names, answers, strict=True)}


def _remove_unread(model: Any) -> str:
    """Return what leads to no output, and weights that nobody reads."""
    graph = model.graph
    alive = {value.name for value in graph.output}
    for node in reversed(graph.node):
        if alive & {*node.output}:
            alive |= {*node.input, *_reads_inside(node)}
    removed = [node for node in graph.node if not alive & {*node.output}]
    _drop(graph.node, removed)
    _drop(graph.initializer, [tensor for tensor in graph.initializer if tensor.name not in alive])
    computed = [node for node in removed if node.op_type != "Constant"]
    return f"removed {len(computed)} operators that lead to no output" if computed else ""


def _drop(sequence: Any, unwanted: list[Any]) -> None:
    """Take messages out of a repeated field in place: `remove` would compare each with all before it."""
    gone = {id(one) for one in unwanted}
    for place in reversed(range(len(sequence))):
        if id(sequence[place]) in gone:
            del sequence[place]
