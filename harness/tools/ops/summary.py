"""What a network is made of, counted from its graph, and which operators each path can take.

No weight is read, so the outline of a network that has none yet is counted as well. What the compiler makes of the
operators in the end, and why it left some out, a build says (`adreno-bench build`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.compile.models.onnx_inputs import inputs_of
from harness.compile.models.outline import (
    INTEGER_PRODUCTS,
    all_nodes,
    attribute_of,
    constant_of,
    inner_graphs,
    kind_of,
    static_shape,
    tensor_types,
)

Shape = tuple[int, ...]


@dataclass(frozen=True)
class TensorEnd:
    """An input or an output. Extents that are not known stand by their name, or as `?`."""

    name: str
    shape: tuple[int | str, ...]
    dtype: str


@dataclass(frozen=True)
class Node:
    """An operator with the shapes around it, None where ONNX's inference cannot tell."""

    proto: Any
    kind: str
    inputs: tuple[Shape | None, ...]
    outputs: tuple[Shape | None, ...]
    dtype: str
    """Number format of its first input."""
    double: bool
    """Whether it reads or makes float64, which no Adreno computes in."""
    macs: int | None
    """Multiply-accumulates of convolutions and products, as papers count them; 0 for all else. None if it depends on a
    shape that is open."""
    parameters: int
    """Elements of the weights that it is the first to read: of those that are trained, which a batch norm's statistics
    and single numbers are not."""


@dataclass(frozen=True)
class NetworkSummary:
    """A network, counted."""

    inputs: tuple[TensorEnd, ...]
    outputs: tuple[TensorEnd, ...]
    nodes: tuple[Node, ...]
    weight_bytes: int

    @property
    def macs(self) -> int | None:
        """Multiply-accumulates of one inference, None if those of an operator are not known."""
        return total_macs(self.nodes)

    @property
    def parameters(self) -> int:
        """Trained numbers."""
        return sum(node.parameters for node in self.nodes)

    @property
    def double(self) -> dict[str, int]:
        """How many operators of each kind read or make float64."""
        return dict(Counter(node.kind for node in self.nodes if node.double))


def total_macs(nodes: Iterable[Node]) -> int | None:
    """Multiply-accumulates of some operators, None if those of one are not known."""
    counts = [node.macs for node in nodes]
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if len(numbers) == len(counts) else None


def summarize(model: Any) -> NetworkSummary:
    """Count a network, with both branches of an If."""
    import onnx

    types = tensor_types(model)
    weights = dict(_weights(model.graph))
    nodes, counted = [], set[str]()
    for proto in all_nodes(model.graph):
        if proto.op_type == "Constant":
            continue
        inputs = tuple(static_shape(types.get(name)) for name in proto.input)
        outputs = tuple(static_shape(types.get(name)) for name in proto.output)
        own = [name for name in _trained(proto) if name in weights and name not in counted]
        counted |= {*own}
        quantised = proto.op_type in QUANTISED
        data = types.get(proto.input[0]) if proto.input else None
        nodes.append(
            Node(
                proto,
                kind_of(proto),
                inputs,
                outputs,
                _dtype(data),
                any(_dtype(types.get(name)) == "float64" for name in (*proto.input, *proto.output)),
                _macs(proto, inputs, outputs),
                sum(math.prod(weights[name].dims) for name in own if _is_trained(weights[name], quantised)),
            )
        )
    return NetworkSummary(
        tuple(_end(value, types) for value in inputs_of(model)),
        tuple(_end(value, types) for value in model.graph.output),
        tuple(nodes),
        sum(
            math.prod(tensor.dims) * onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
            for tensor in weights.values()
            if tensor.data_type != tensor.STRING
        ),
    )


def _weights(graph: Any) -> Iterator[tuple[str, Any]]:
    for tensor in graph.initializer:
        yield tensor.name, tensor
    for node in graph.node:
        if (tensor := constant_of(node)) is not None:
            yield node.output[0], tensor
        for inner in inner_graphs(node):
            yield from _weights(inner)


def _trained(node: Any) -> list[str]:
    """Return inputs of a node that may be trained weights: no statistics, scales and zero points."""
    if node.op_type == "BatchNormalization":
        return list(node.input[:3])
    if node.op_type == "DequantizeLinear":
        return list(node.input[:1])
    if node.op_type in INTEGER_PRODUCTS:
        place = WEIGHT_PLACES.get(node.op_type, 1)
        return [*node.input[place : place + 1], *node.input[8:9]]
    return list(node.input)


def _is_trained(tensor: Any, quantised: bool) -> bool:
    real = (tensor.FLOAT, tensor.FLOAT16, tensor.DOUBLE, tensor.BFLOAT16)
    return tensor.data_type in ((tensor.INT8, tensor.UINT8, tensor.INT32) if quantised else real) and bool(tensor.dims)


QUANTISED = ("DequantizeLinear", *INTEGER_PRODUCTS)
"""Operators whose trained weights are integers."""
WEIGHT_PLACES = {"QLinearConv": 3, "QLinearMatMul": 3}
"""Which input is the weight, where it is not the second."""
PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul", *INTEGER_PRODUCTS)


def _macs(node: Any, inputs: tuple[Shape | None, ...], outputs: tuple[Shape | None, ...]) -> int | None:
    if node.op_type not in PRODUCTS:
        return 0
    place = WEIGHT_PLACES.get(node.op_type, 1)
    data, weight, output = (next(iter(shapes), None) for shapes in (inputs, inputs[place:], outputs))
    if data is None or weight is None or output is None:
        return None
    if node.op_type in ("Conv", "ConvInteger", "QLinearConv"):
        return math.prod(output) * math.prod(weight[1:])
    if node.op_type == "ConvTranspose":
        return math.prod(data) * math.prod(weight[1:])
    if node.op_type == "Gemm":
        return math.prod(output) * data[0 if attribute_of(node, "transA", 0) else 1]
    return math.prod(output) * data[-1] if data else 0


def _end(value: Any, types: Mapping[str, Any]) -> TensorEnd:
    kind = types.get(value.name) or value.type.tensor_type
    shape = tuple(dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in kind.shape.dim)
    return TensorEnd(value.name, shape, _dtype(kind))


def _dtype(kind: Any | None) -> str:
    import onnx

    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).name) if kind is not None else "?"
    except KeyError:
        return "?"


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
