"""Changes of an ONNX graph in place, for the steps of the preparation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, wraps
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from device_runner.device import Array
from harness.compile.models.outline import NetworkView, all_graphs, all_nodes, copy_of, inner_graphs, is_onnx, node_name

INTEGERS = "integers"
"""Stem of the names of products of integers, and of what is computed of them in float32, whatever the precision."""


class NodeWriter:
    """Writes operators and constants under names that the network does not use yet."""

    def __init__(self, model: Any, stem: str) -> None:
        self.graph = model.graph
        self.nodes: list[Any] = []
        """What was written since `take` was called."""
        self._stem, self._number = stem, 0
        self._lists: dict[tuple[int, ...], str] = {}

    @cached_property
    def _names(self) -> set[str]:
        graph = self.graph
        names = {name for node in all_nodes(graph) for name in (*node.input, *node.output)}
        return names | {value.name for value in (*graph.input, *graph.output, *graph.initializer)}

    def name(self, stem: str = "") -> str:
        """Return a new name, of another stem than the writer's if one is given."""
        while True:
            self._number += 1
            if (name := f"{stem or self._stem}_{self._number}") not in self._names:
                return name

    def constant(self, array: Array) -> str:
        """Write a constant; returns its name."""
        name = self.name()
        self.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name))
        return name

    def integers(self, *numbers: int) -> str:
        """Write a constant list of integers; returns its name."""
        if numbers not in self._lists:
            self._lists[numbers] = self.constant(np.array(numbers, np.int64))
        return self._lists[numbers]

    def add(self, operator: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Write an operator with one result; returns the result's name."""
        result = output or self.name()
        self.nodes.append(helper.make_node(operator, list(inputs), [result], result, **attributes))
        return result

    def slice(self, tensor: str, start: int, end: int, axis: int = 0, output: str = "") -> str:
        """Write a slice along one axis; returns its name."""
        return self.add("Slice", tensor, *map(self.integers, (start, end, axis)), output=output)

    def copy(self, nodes: Sequence[Any], names: Mapping[str, str], place: str = "") -> dict[str, str]:
        """Write operators once more, which read other names and have names of their own; returns those of results."""
        made = {name: self.name() for node in nodes for name in node.output if name}
        for node in nodes:
            self.nodes.append(copy := copy_of(node))
            rename(copy, {**names, **made})
            copy.name = f"{place}/{node_name(node)}" if place else next(filter(None, copy.output))
        return made

    def weights(self, graph: Any) -> dict[str, str]:
        """Write the weights of a graph inside the network; returns their new names."""
        names = {}
        for tensor in graph.initializer:
            copy = copy_of(tensor)
            names[tensor.name] = copy.name = self.name()
            self.graph.initializer.append(copy)
        return names

    def take(self) -> list[Any]:
        """Return what was written, and begin anew."""
        nodes, self.nodes = self.nodes, []
        return nodes


WriteOthers = Callable[[Any, NetworkView, NodeWriter], bool]
"""Gets an operator, its network and a writer; returns whether it wrote others, which take the operator's place."""


def rewrite(model: Any, stem: str, write_others: WriteOthers, *operators: str, inside: bool = False) -> list[Any]:
    """Let a function write others, with names of this stem, in the place of operators; returns those that went.

    Only these operators of ONNX's own are asked about; all nodes if none is named. `inside` means those in branches and
    bodies as well.
    """
    view, write, gone = NetworkView(model), NodeWriter(model, stem), list[Any]()
    for graph in [*all_graphs(model.graph)] if inside else [model.graph]:
        nodes, before = list[Any](), len(gone)
        for node in graph.node:
            if (not operators or is_onnx(node, *operators)) and write_others(node, view, write):
                gone.append(copy_of(node))
                nodes += write.take()
            else:
                nodes.append(node)
        if len(gone) > before:
            nodes = [copy_of(node) for node in nodes]
            del graph.node[:]
            graph.node.extend(nodes)
    return gone


def replacing(stem: str, text: str, *operators: str) -> Callable[[WriteOthers], Callable[[Any], str]]:
    """Make a step of the preparation of a function that writes others in the place of one of these operators.

    The text says what became of `{}`, which are the operators that went.
    """

    def step_of(write_others: WriteOthers) -> Callable[[Any], str]:
        @wraps(write_others)
        def step(model: Any) -> str:
            return describe(text, rewrite(model, stem, write_others, *operators))

        return step

    return step_of


def describe(text: str, nodes: Iterable[Any]) -> str:
    """Return what became of some operators, with `2 Conv and 1 Gemm` in the place of `{}`; empty if there are none."""
    kinds = Counter(node.op_type for node in nodes)
    return text.format(" and ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))) if kinds else ""


def rename(node: Any, new_name: Mapping[str, str]) -> None:
    """Give a node's inputs and outputs other names, and what the graphs inside it read."""
    for names in (node.input, node.output):
        names[:] = [new_name.get(name, name) for name in names]
    for graph in inner_graphs(node):
        for value in graph.output:
            value.name = new_name.get(value.name, value.name)
        for inner in graph.node:
            rename(inner, new_name)


def drop(sequence: Any, unwanted: Iterable[Any]) -> None:
    """Take messages out of a repeated field in place: `remove` would compare each with all before it."""
    gone = {id(message) for message in unwanted}
    for place in reversed(range(len(sequence))):
        if id(sequence[place]) in gone:
            del sequence[place]


def set_attribute(node: Any, name: str, value: Any) -> None:
    """Give a node's attribute a value; None removes it."""
    drop(node.attribute, [attribute for attribute in node.attribute if attribute.name == name])
    if value is not None:
        node.attribute.append(helper.make_attribute(name, value))


def inner_reads(node: Any) -> Iterator[str]:
    """Yield names that the graphs inside a node read, also from outside."""
    for graph in inner_graphs(node):
        yield from (value.name for value in graph.output)
        for inner in graph.node:
            yield from inner.input
            yield from inner_reads(inner)
