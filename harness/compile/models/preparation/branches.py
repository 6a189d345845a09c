"""The branch of an If that its condition always takes, where that is a constant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.base.tables import counted
from harness.compile.models.outline import attribute_of, constants, first_names, inner_graphs, node_name
from harness.compile.models.preparation.constants import fold
from harness.compile.models.preparation.editing import NodeWriter, is_onnx, replace_nodes
from harness.compile.models.preparation.identities import remove_identities


def take_constant_branches(model: Any) -> str:
    """Put the branch that is taken in the place of each If whose condition is a constant."""
    count, names = 0, list[str]()
    while taken := take_branches(model):
        names += taken
        remove_identities(model)
        count += fold(model)
    if not names:
        return ""
    text = f"kept one branch of {len(names)} If whose condition is constant: {first_names(names)}"
    return f"{text}; folded {counted(count, 'operator')} in them" if count else text


def name_choices(model: Any) -> str:
    """Name each If that an input decides, since nothing proves the branch that the inputs of a case do not take."""
    names = [node_name(node) for node in model.graph.node if is_onnx(node, "If")]
    if not names:
        return ""
    text = f"left {len(names)} If to its inputs, of which one branch is judged: {first_names(names)}"
    return f"{text} (--fix INPUT=NUMBER chooses for good)"


def take_branches(model: Any) -> list[str]:
    """Put the branch that is taken in the place of each If that a constant decides.

    Returns their names, as `then of NAME`. An If inside such a branch stays.
    """
    from onnx import numpy_helper

    values, writer, taken = constants(model), NodeWriter(model, "branch"), list[str]()

    def branch_of(node: Any) -> list[Any] | None:
        if node.input[0] not in values:
            return None
        word = "then" if numpy_helper.to_array(values[node.input[0]]).any() else "else"
        taken.append(f"{word} of {node_name(node)}")
        return _nodes_of(attribute_of(node, f"{word}_branch", None), list(node.output), writer)

    replace_nodes(model.graph, branch_of, "If")
    return taken


def _nodes_of(branch: Any, outputs: list[str], writer: NodeWriter) -> list[Any]:
    """Return a branch's operators as those of the network around it, which gets its weights."""
    own = [tensor.name for tensor in branch.initializer] + [name for node in branch.node for name in node.output]
    new_name = {name: writer.name() for name in own if name}
    for tensor in branch.initializer:
        tensor.name = new_name[tensor.name]
        writer.graph.initializer.append(tensor)
    nodes = list(branch.node)
    for node in nodes:
        rename(node, new_name)
    for value, output in zip(branch.output, outputs, strict=True):
        if output:
            writer.add("Identity", new_name.get(value.name, value.name), output=output)
    return nodes + writer.take()


def rename(node: Any, new_name: Mapping[str, str]) -> None:
    """Give a node's inputs and outputs other names, and what the graphs inside it read."""
    for names in (node.input, node.output):
        for place, name in enumerate(names):
            names[place] = new_name.get(name, name)
    for graph in inner_graphs(node):
        for value in graph.output:
            value.name = new_name.get(value.name, value.name)
        for inner in graph.node:
            rename(inner, new_name)
