"""A network without its weights: all that its structure and its shapes depend on, and small however large it is.

ONNX's checker and its shape inference copy what they are given several times; of an outline there is nothing to copy.
Weights become inputs of their type and shape. Small tensors stay, because shapes are computed from them. `NetworkView`
asks a network for what is known of its tensors before it runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from device_runner.device import Array
from harness.base.failures import ModelError, UnsupportedOperator
from harness.base.tables import listed

Types = Mapping[str, Any]
"""ONNX's types of tensors, by name."""
SMALL_ELEMENTS = 64
"""A tensor of so many elements may be a shape, axes or the like."""
LIKE_FIRST = ("Gelu", "LayerNormalization")
"""Ends of operators of onnxruntime, some in ONNX's own domain, whose result is like their first input."""
OLDEST_IR_VERSION = 4
"""First version of the format in which weights need not also be inputs."""


def outline(model: Any) -> Any:
    """Return the model without the data of its large weights; they are inputs instead."""
    import onnx
    from onnx import helper

    copy = onnx.ModelProto()
    copy.ir_version = max(model.ir_version, OLDEST_IR_VERSION)
    copy.opset_import.extend(model.opset_import)
    copy.functions.extend(model.functions)
    graph, listed = copy.graph, {value.name for value in model.graph.input}
    graph.name = model.graph.name
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    graph.value_info.extend(model.graph.value_info)
    graph.sparse_initializer.extend(model.graph.sparse_initializer)

    def leave_out(tensor: Any, name: str) -> None:
        if name not in listed:
            graph.input.append(helper.make_tensor_value_info(name, tensor.data_type, tensor.dims))

    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) <= SMALL_ELEMENTS:
            graph.initializer.append(tensor)
        else:
            leave_out(tensor, tensor.name)
    for node in model.graph.node:
        value = constant_of(node)
        if value is None or math.prod(value.dims) <= SMALL_ELEMENTS:
            graph.node.append(node)
        else:
            leave_out(value, node.output[0])
    version = opset_of(model)
    for node in all_nodes(graph):
        if node.op_type.endswith(LIKE_FIRST) and not onnx.defs.has(node.op_type, version, node.domain):
            node.CopyFrom(helper.make_node("Identity", node.input[:1], node.output[:1]))
    return copy


def opset_of(model: Any) -> int:
    """Version of ONNX's own operators that the network is written in."""
    return max((int(own.version) for own in model.opset_import if own.domain in ("", "ai.onnx")), default=1)


def copy_of(message: Any) -> Any:
    """Return a copy of a network, or of a node, that lives longer than the list which the node is in."""
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def inlined(model: Any) -> Any:
    """Return the network with each call of a function of its own as what the function does."""
    from onnx import inliner

    if not model.functions:
        return model
    whole = copy_of(model)
    defaults = {(each.domain, each.name, each.overload): each.attribute_proto for each in whole.functions}
    for call in (node for part in (whole.graph, *whole.functions) for node in all_nodes(part)):
        names = {attribute.name for attribute in call.attribute}  # the inliner of onnx 1.23 knows no others
        attributes = defaults.get((call.domain, call.op_type, call.overload), ())
        call.attribute.extend(default for default in attributes if default.name not in names)
    return inliner.inline_local_functions(whole)


def constant_of(node: Any) -> Any | None:
    """Return the tensor of a `Constant` operator that has one."""
    if node.op_type != "Constant":
        return None
    return next((attribute.t for attribute in node.attribute if attribute.name == "value"), None)


def constants(model: Any) -> dict[str, Any]:
    """Tensors that the network itself holds, by name: weights, and values of its `Constant` operators."""
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    return weights | {node.output[0]: value for node in model.graph.node if (value := constant_of(node)) is not None}


def attribute_of(node: Any, name: str, default: Any) -> Any:
    """Return the value of a node's attribute, text as `str`; `default` if the node leaves it out."""
    from onnx import helper

    value = next((helper.get_attribute_value(each) for each in node.attribute if each.name == name), default)
    return value.decode() if isinstance(value, bytes) else value


def operand(node: Any, place: int) -> str:
    """Return the name of one of a node's inputs; empty if it has none there."""
    return str(node.input[place]) if place < len(node.input) else ""


def check(file: Path, model: Any) -> None:
    """Raise `ModelError` unless the network is valid ONNX: no cycle, no name twice, every operator well formed."""
    import onnx

    newest_ir, newest_set = int(onnx.IR_VERSION), onnx.defs.onnx_opset_version()  # the checker takes later sets
    versions = ("IR version", model.ir_version, newest_ir), ("operator set", opset_of(model), newest_set)
    for kind, version, newest in versions:
        if version > newest:
            raise ModelError(
                f"{file} is in {kind} {version}, and onnx {onnx.__version__} knows them up to {newest}",
                hint="export it with an older one, or install a newer onnx",
            )
    try:
        onnx.checker.check_model(_with_ends(outline(model)))
    except (onnx.checker.ValidationError, ValueError, TypeError) as error:
        reason = " ".join(str(error).partition("==> Context")[0].split()).rstrip(".") or type(error).__name__
        kind = reason.partition("No Op registered for ")[2].partition(" ")[0]
        since = [each.since_version for each in onnx.defs.get_all_schemas_with_history() if each.name == kind]
        other = "without custom operators" if kind or "opset import for" in reason else "again"
        how = f"with operator set {min(since)}" if since else other
        problem = f"{file} is not a valid ONNX model: {reason}"
        raise ModelError(problem, hint=f"export it {how}", evidence=str(error)) from error


def _with_ends(small_model: Any) -> Any:
    """Return an outline whose ends all have a type and a shape, which ONNX's checker wants of them."""
    for value in (*small_model.graph.input, *small_model.graph.output):
        kind = value.type.WhichOneof("value")
        if kind is None or (kind == "tensor_type" and not value.type.tensor_type.HasField("shape")):
            value.type.tensor_type.elem_type = value.type.tensor_type.elem_type or 1
            value.type.tensor_type.shape.SetInParent()
    return small_model


def tensor_types(model: Any) -> dict[str, Any]:
    """Types of all tensors by name, as far as ONNX's own inference finds them. Shapes may be partial.

    Weights are among them, and what is inside a branch or a body.
    """
    import onnx

    small_model = outline(model)
    try:
        graph = onnx.shape_inference.infer_shapes(small_model, data_prop=True).graph
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        graph = small_model.graph
    graphs = list(all_graphs(graph))
    values = (value for each in graphs for value in (*each.value_info, *each.output, *each.input))
    small = {
        tensor.name: onnx.helper.make_tensor_type_proto(tensor.data_type, tensor.dims).tensor_type
        for each in graphs
        for tensor in each.initializer
    }
    return {value.name: value.type.tensor_type for value in values} | small


def all_graphs(graph: Any) -> Iterator[Any]:
    """Yield the graphs inside the nodes of a graph, and then the graph."""
    for inner in (inner for node in graph.node for inner in inner_graphs(node)):
        yield from all_graphs(inner)
    yield graph


def static_shape(kind: Any | None) -> tuple[int, ...] | None:
    """Return the shape of a type, None unless every extent is known."""
    if kind is None or not kind.HasField("shape"):
        return None
    extents = [dim.dim_value if dim.HasField("dim_value") else -1 for dim in kind.shape.dim]
    return None if any(extent < 0 for extent in extents) else tuple(extents)


MOST_NAMED = 3
"""Operators of one kind that a line names."""


def all_nodes(graph: Any) -> Iterator[Any]:
    """Yield every node of a graph and of the graphs inside its nodes."""
    for node in graph.node:
        yield node
        for inner in inner_graphs(node):
            yield from all_nodes(inner)


def inner_graphs(node: Any) -> list[Any]:
    """Return the graphs inside a node: the branches of an If, the body of a Loop."""
    return [graph for each in node.attribute for graph in (*([each.g] if each.HasField("g") else ()), *each.graphs)]


def is_onnx(node: Any, *operators: str) -> bool:
    """Return whether a node is one of these operators of ONNX's own, or any of them if none is named."""
    return node.domain in ("", "ai.onnx") and (not operators or node.op_type in operators)


def kind_of(node: Any) -> str:
    """Return the operator's name, with its domain if it is none of ONNX's own."""
    return str(node.op_type) if is_onnx(node) else f"{node.domain}.{node.op_type}"


def node_name(node: Any) -> str:
    """Return the node's name, or that of its result if it has none."""
    return str(node.name or next(filter(None, node.output), ""))


def nodes_by_kind(model: Any, chosen: Callable[[Any], bool]) -> dict[str, list[str]]:
    """Return the names of the chosen nodes, by operator."""
    names: dict[str, list[str]] = {}
    for node in all_nodes(model.graph):
        if chosen(node):
            names.setdefault(kind_of(node), []).append(node_name(node))
    return dict(sorted(names.items()))


def double_operators(model: Any) -> tuple[str, ...]:
    """Return the kinds of operators that compute in float64 with what depends on an input."""
    import onnx

    doubles = {name for name, kind in tensor_types(model).items() if kind.elem_type == onnx.TensorProto.DOUBLE}
    moving, kinds = {value.name for value in model.graph.input}, set[str]()
    moving -= {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        inner = [each for graph in inner_graphs(node) for each in all_nodes(graph)]
        if inner or moving & {*node.input}:
            moving |= {*node.output}
            kinds |= {kind_of(each) for each in (node, *inner) if doubles & {*each.input, *each.output}}
    return tuple(sorted(kinds))


def unknown_operators(model: Any, table: Collection[str]) -> dict[str, list[str]]:
    """Return the names of the nodes whose operator is not in `table`, by operator."""
    return nodes_by_kind(model, lambda node: node.op_type not in table)


def require_known(model: Any, table: Collection[str]) -> None:
    """Raise `UnsupportedOperator`, which names all that are not in `table` and where they stand."""
    if unknown := unknown_operators(model, table):
        hint = contradiction(model) or "; ".join(remedies(unknown))
        _require_none(unknown, "TVM's ONNX importer does not know", hint)


def contradiction(model: Any) -> str:
    """Return what is wrong with the shapes of a network that failed; empty if nothing is.

    ONNX's strict inference also objects to networks that run, whose file notes a wrong shape somewhere.
    """
    import onnx

    try:
        onnx.shape_inference.infer_shapes(outline(model), strict_mode=True)
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError) as error:
        why = str(error).splitlines()[0].rpartition("Inference error(s): ")[2]
        if any(node.op_type == "If" for node in all_nodes(model.graph)):
            return f"both branches of an If cannot be computed here, so choose one with --fix INPUT=NUMBER: {why}"
        return f"the network contradicts itself, so export it another way: {why}"
    return ""


RECURRENT = ("LSTM", "GRU", "RNN")
"""Layers of steps, which are unrolled before TVM sees them (`harness.compile.models.preparation.recurrent`)."""
INTEGER_PRODUCTS = ("QLinearConv", "QLinearMatMul", "ConvInteger", "MatMulInteger")
"""Products of integers, which TVM sees in float32 (`harness.compile.models.preparation.integers`)."""
RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
"""Operators whose results differ with the same operands."""
_REMEDIES = {
    **dict.fromkeys((*RECURRENT, "com.microsoft.DynamicQuantizeLSTM"), "{} is unrolled if --shape gives its length"),
    **dict.fromkeys(
        ("Loop", "Scan"),
        "{} is unrolled where the number of its rounds is known, and not 0 if they are stacked: fix lengths with "
        "--shape, and what its condition reads with --fix",
    ),
    **dict.fromkeys(("DFT", "STFT"), "{} is written as a product in float32 where its length and window are constants"),
    **dict.fromkeys(
        INTEGER_PRODUCTS, "{} is computed in float32 where its weight is a constant and its sums are below 2^24"
    ),
    **dict.fromkeys(RANDOM, "no answer to random numbers is right or wrong: export the model without sampling"),
}


def remedies(unknown: Collection[str]) -> list[str]:
    """Return what to do about operators that TVM's importer does not know, each thing once."""
    return list(dict.fromkeys(map(_remedy, unknown)))


def _remedy(kind: str) -> str:
    own = "onnxruntime's optimiser made {}: take the model from before that"
    usual = own if kind.startswith("com.microsoft") else "export the model without {}"
    return _REMEDIES.get(kind, usual).format(kind.removeprefix("com.microsoft."))


def require_on_device(model: Any, host: Collection[str]) -> None:
    """Raise `UnsupportedOperator` if an operator has no kernel, or only a `host` with Python has it, or no shape."""
    hint = "export the model without it: with as many results as are fixed beforehand, as TopK has"
    problem = "no device runs what TVM computes in Python:"
    _require_none(nodes_by_kind(model, lambda node: node.op_type in host), problem, hint)
    hint = "export the model up to its boxes and scores, which are then judged"
    problem = "TVM builds no OpenCL kernel for"  # in 0.25 to 0.27
    _require_none(nodes_by_kind(model, lambda node: node.op_type == "NonMaxSuppression"), problem, hint)
    hint = "export it with 2, as torchvision's detectors have it: 0 takes more samples of a larger region"
    problem = "TVM builds no OpenCL kernel for a sampling_ratio of 0:"
    by_size = nodes_by_kind(model, lambda n: n.op_type == "RoiAlign" and not attribute_of(n, "sampling_ratio", 0))
    _require_none(by_size, problem, hint)
    inputs = {value.name for value in model.graph.input}
    hint = "export the model with this shape as a constant"
    problem = "TVM compiles fixed shapes, and an input of the network is that of"
    _require_none(nodes_by_kind(model, lambda n: n.op_type == "Reshape" and operand(n, 1) in inputs), problem, hint)


def require_no_branch(model: Any) -> None:
    """Raise `UnsupportedOperator` if an input decides an If, at which TVM's partitioner for CLML stops."""
    problem = "path clml takes no network with a branch that an input decides:"
    hint = "choose the branch for good with --fix INPUT=NUMBER, or use path opencl or texture"
    _require_none(nodes_by_kind(model, lambda node: node.op_type == "If"), problem, hint)


def _require_none(names_by_kind: dict[str, list[str]], problem: str, hint: str) -> None:
    if names_by_kind:
        raise UnsupportedOperator(
            f"{problem} {'; '.join(f'{kind} ({first_names(names)})' for kind, names in names_by_kind.items())}",
            hint=hint,
            evidence="\n".join(f"{kind}: {', '.join(names)}" for kind, names in names_by_kind.items()),
        )


def first_names(names: list[str]) -> str:
    """Return a line of the first names, and how many more there are."""
    return listed((name[:60] for name in names), MOST_NAMED)


class NetworkView:
    """The tensors of one ONNX network."""

    def __init__(self, model: Any) -> None:
        self.model = model

    @cached_property
    def _types(self) -> Types:
        return tensor_types(self.model)

    @cached_property
    def constants(self) -> Mapping[str, Any]:
        """Tensors that the network holds, by name."""
        return constants(self.model)

    @cached_property
    def _makers(self) -> Mapping[str, Any]:
        return {name: node for node in self.model.graph.node for name in node.output}

    def maker(self, name: str, *operators: str) -> Any | None:
        """Return the node that makes a tensor; None if it is none of these operators of ONNX's own."""
        node = self._makers.get(name)
        return node if node is not None and is_onnx(node, *operators) else None

    def number_format(self, name: str) -> int:
        """ONNX's number of a tensor's number format; 0 if inference does not find it."""
        return int(getattr(self.kind(name), "elem_type", 0))

    def kind(self, name: str) -> Any | None:
        """ONNX's type of a tensor; None if inference does not find it."""
        return self._types.get(name)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a tensor; None unless every extent is known."""
        return static_shape(self._types.get(name))

    def constant(self, node: Any, place: int) -> Array | None:
        """One of a node's inputs; None if it has none there, or one that is computed."""
        from onnx import numpy_helper

        name = operand(node, place)
        return numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def is_read(self, name: str) -> bool:
        """Return whether an operator or an output of the network takes a tensor."""
        outputs = {value.name for value in self.model.graph.output}
        return name in outputs or any(name in node.input for node in all_nodes(self.model.graph))
