"""Operators in an order in which each comes after those that it reads, as ONNX asks, and none that nobody reads."""

from __future__ import annotations

from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from typing import Any

from harness.base.tables import counted
from harness.compile.models.outline import inner_graphs
from harness.compile.models.preparation.editing import drop, inner_reads


def sort_operators(model: Any) -> str:
    """Sort the operators of the network and of the graphs inside; those that are in order keep their places."""
    return "sorted the operators" if _sort(model.graph) else ""


def _sort(graph: Any) -> bool:
    inside = [_sort(inner) for node in graph.node for inner in inner_graphs(node)]
    order = _order(graph.node)
    if order == list(range(len(graph.node))):
        return any(inside)
    nodes = [type(graph.node[0]).FromString(graph.node[place].SerializeToString()) for place in order]
    del graph.node[:]
    graph.node.extend(nodes)
    return True


def _order(nodes: Any) -> list[int]:
    """Return the places of the nodes in order; as they are, if one waits for itself."""
    maker = {name: place for place, node in enumerate(nodes) for name in node.output if name}
    sources = {
        place: {maker[name] for name in (*node.input, *inner_reads(node)) if name in maker}
        for place, node in enumerate(nodes)
    }
    in_order = all(source < place for place, wanted in sources.items() for source in wanted)
    with suppress(CycleError):
        return [*sources] if in_order else [*TopologicalSorter(sources).static_order()]
    return [*sources]


def remove_unread(model: Any) -> str:
    """Remove what leads to no output, and weights that nobody reads."""
    graph = model.graph
    alive = {value.name for value in graph.output}
    for node in reversed(graph.node):
        if alive & {*node.output}:
            alive |= {*node.input, *inner_reads(node)}
    unread = [node for node in graph.node if not alive & {*node.output}]
    count = sum(node.op_type != "Constant" for node in unread)
    drop(graph.node, unread)
    drop(graph.initializer, [tensor for tensor in graph.initializer if tensor.name not in alive])
    return f"removed {counted(count, 'operator that leads', 'operators that lead')} to no output" if count else ""
