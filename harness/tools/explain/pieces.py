"""An ONNX network cut into pieces, each a network of its own: its first operators, or one with some before it.

A piece reads the tensors at its cut as inputs and returns those that the rest of the network would read. Whatever
depends on no input counts as a weight, and comes along where it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from device_runner.device import Array
from harness.compile.models.number_formats import SUFFIX, cast, plain_type
from harness.compile.models.onnx_inputs import input_specs
from harness.compile.models.outline import OLDEST_IR_VERSION, inner_graphs, tensor_types
from harness.tools.explain.reduced_network import SmallNetwork


@dataclass(frozen=True)
class NetworkOperator:
    """One operator of a network, as its file has it."""

    number: int
    """Counted from 1, in the order of the file, which is one in which they can be computed."""
    kind: str
    name: str
    reads: tuple[str, ...]
    """Tensors that depend on the network's inputs; weights are left out."""
    makes: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.name or self.makes[0]}"


@dataclass(frozen=True)
class Piece:
    """Some operators of a network as a network."""

    operators: tuple[NetworkOperator, ...]
    model: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class CuttableNetwork:
    """A network that can be cut; its inputs have static shapes."""

    def __init__(self, model: Any) -> None:
        self.inputs = tuple(spec.name for spec in input_specs(model))
        self._model = model
        self._types = tensor_types(model)
        self._nodes: list[Any] = []
        self._constant: dict[str, Any] = {tensor.name: tensor for tensor in model.graph.initializer}
        """What makes each tensor that depends on no input: a weight, or a node."""
        self.operators: list[NetworkOperator] = []
        alive = {*self.inputs}
        for node in model.graph.node:
            reads = tuple(dict.fromkeys(name for name in _reads(node) if name in alive))
            if reads:
                alive |= {*node.output}
                makes = tuple(filter(None, node.output))
                self.operators.append(NetworkOperator(len(self._nodes) + 1, node.op_type, node.name, reads, makes))
                self._nodes.append(node)
            else:
                self._constant.update(dict.fromkeys(filter(None, node.output), node))

    def first(self, count: int) -> Piece:
        """Return the first operators, with all that the others or the caller would read of them as outputs."""
        return self.only(self.operators[:count])

    def around(self, number: int, depth: int) -> Piece:
        """Return an operator with those that lead to it in less than `depth` steps; its outputs are that operator's."""
        last = self.operators[number - 1]
        inside = {last}
        for _ in range(depth - 1):
            reads = {name for operator in inside for name in operator.reads}
            inside |= {operator for operator in self.operators[:number] if reads & {*operator.makes}}
        read = {name for operator in self.operators for name in operator.reads} | self._outputs
        return self._piece(inside, [name for name in last.makes if name in read] or last.makes[:1])

    def only(self, operators: Iterable[NetworkOperator]) -> Piece:
        """Return a network of these operators, with all results that the others or the caller read as outputs."""
        inside = {*operators}
        outside = {name for operator in self.operators if operator not in inside for name in operator.reads}
        outputs = [name for operator in self.operators if operator in inside for name in operator.makes]
        return self._piece(inside, [name for name in outputs if name in outside | self._outputs])

    def making(self, tensors: Iterable[str]) -> Piece:
        """Return all that leads to some tensors, which are its outputs."""
        needed, inside = {*tensors}, set()
        for operator in reversed(self.operators):
            if needed & {*operator.makes}:
                inside.add(operator)
                needed |= {*operator.reads}
        return self._piece(
            inside, [name for operator in self.operators for name in operator.makes if name in {*tensors}]
        )

    def shape(self, tensor: str) -> tuple[int, ...] | None:
        """Shape of a tensor, None where ONNX's inference cannot tell."""
        kind = self._types.get(tensor)
        if kind is None or not kind.HasField("shape"):
            return None
        return tuple(dim.dim_value for dim in kind.shape.dim)

    def lost_in_half(self, operators: Iterable[NetworkOperator]) -> Iterator[tuple[NetworkOperator, float, float]]:
        """Yield constants of one number that operators read, and the zero or infinity that they are in halves."""
        for operator in operators:
            for name in self._nodes[operator.number - 1].input:
                number = _number(self._constant.get(name))
                with np.errstate(over="ignore"):
                    half = float(np.float16(number))
                if half in (0.0, np.inf, -np.inf) and half != number:
                    yield operator, number, half

    @property
    def _outputs(self) -> set[str]:
        return {value.name for value in self._model.graph.output}

    def _piece(self, operators: Iterable[NetworkOperator], outputs: Sequence[str]) -> Piece:
        inside = sorted(operators, key=lambda operator: operator.number)
        outputs = outputs or inside[-1].makes[:1]
        outputs_inside = {name for operator in inside for name in operator.makes}
        inputs = tuple(
            dict.fromkeys(name for operator in inside for name in operator.reads if name not in outputs_inside)
        )
        nodes = [self._nodes[operator.number - 1] for operator in inside]
        weights, constants = self._constants(nodes)
        odd = {name: kind for name, kind in self._types.items() if plain_type(kind.elem_type)}
        nodes, values, returned = as_plain(nodes, inputs, outputs, odd)
        piece = onnx.ModelProto()
        piece.CopyFrom(self._model)
        piece.ir_version = max(piece.ir_version, OLDEST_IR_VERSION)
        piece.graph.Clear()
        piece.graph.CopyFrom(
            onnx.helper.make_graph(
                [*constants, *nodes],
                "piece",
                [values.get(name) or self._value(name) for name in inputs],
                [returned.get(name) or self._value(name) for name in outputs],
                weights,
            )
        )
        return Piece(tuple(inside), piece.SerializeToString(deterministic=True), inputs, tuple(outputs))

    def _constants(self, nodes: Iterable[Any]) -> tuple[list[Any], list[Any]]:
        """Return the weights that nodes read, and the nodes that make others, in the order of the file."""
        makers: dict[str, Any] = {}
        waiting = [name for node in nodes for name in _reads(node)]
        while waiting:
            name = waiting.pop()
            if name in self._constant and name not in makers:
                makers[name] = maker = self._constant[name]
                waiting += () if isinstance(maker, onnx.TensorProto) else _reads(maker)
        in_order = [self._constant[name] for name in self._constant if name in makers]
        weights = [maker for maker in in_order if isinstance(maker, onnx.TensorProto)]
        made_by = {id(maker): maker for maker in in_order if not isinstance(maker, onnx.TensorProto)}
        return weights, list(made_by.values())

    def _value(self, name: str) -> Any:
        kind = self._types.get(name)
        if kind is None:
            return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ())
        return onnx.helper.make_value_info(name, onnx.TypeProto(tensor_type=kind))


def with_shapes(piece: Piece, values: Mapping[str, Array]) -> SmallNetwork:
    """Return the piece with the shapes and number formats that its inputs really have."""
    model = SmallNetwork(piece.model, values).proto()
    for value in model.graph.input:
        array = values[value.name]
        dtype = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, dtype, array.shape))
    return SmallNetwork(model.SerializeToString(deterministic=True), values)


def _number(maker: Any) -> float:
    """Return the only number of a constant; 0 for any other."""
    if isinstance(maker, onnx.NodeProto):
        maker = next((field.t for field in maker.attribute if field.name == "value"), None)
    if not isinstance(maker, onnx.TensorProto) or maker.data_type != onnx.TensorProto.FLOAT:
        return 0.0
    array = onnx.numpy_helper.to_array(maker)
    return float(array.item()) if array.size == 1 else 0.0


def _reads(node: Any) -> Iterator[str]:
    """Yield names that a node reads, also those that its inner graphs read from outside."""
    yield from filter(None, node.input)
    for graph in inner_graphs(node):
        own = {value.name for value in (*graph.input, *graph.initializer)}
        own |= {name for inner in graph.node for name in inner.output}
        yield from (name for inner in graph.node for name in _reads(inner) if name not in own)


def as_plain(
    nodes: Iterable[Any], inputs: Sequence[str], outputs: Sequence[str], odd: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any], dict[str, Any]]:
    """Return nodes that take and give plain numbers in place of odd ones, and the values they take and give, by name.

    `odd` has the types of the tensors that need it.
    """
    own_names = {name: name + "/own" for name in inputs if name in odd}
    copies = []
    for node in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.input[:] = [own_names.get(name, name) for name in node.input]
        copies.append(copy)
    before = [cast(name, own, odd[name].elem_type) for name, own in own_names.items()]
    after = [cast(name, name + SUFFIX, plain_type(odd[name].elem_type)) for name in outputs if name in odd]
    values = {name: _plain_value(name, odd[name]) for name in own_names}
    returned = {name: _plain_value(name + SUFFIX, odd[name]) for name in outputs if name in odd}
    return [*before, *copies, *after], values, returned


def _plain_value(name: str, kind: Any) -> Any:
    plain = onnx.TypeProto(tensor_type=kind)
    plain.tensor_type.elem_type = plain_type(kind.elem_type)
    return onnx.helper.make_value_info(name, plain)
