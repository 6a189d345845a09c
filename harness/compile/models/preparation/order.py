"""Operators in an order in which each comes after those that it reads, as ONNX asks and some exporters forget."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

from harness.compile.models.outline import inner_graphs
from harness.compile.models.preparation.editing import inner_reads


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
    sources = [{maker[name] for name in (*node.input, *inner_reads(node)) if name in maker} for node in nodes]
    readers: list[list[int]] = [[] for _ in nodes]
    for place, wanted in enumerate(sources):
        for source in wanted:
            readers[source].append(place)
    missing = [len(wanted) for wanted in sources]
    ready = [place for place, count in enumerate(missing) if not count]
    heapify(ready)
    order = []
    while ready:
        order.append(place := heappop(ready))
        for reader in readers[place]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, reader)
    return order if len(order) == len(missing) else list(range(len(missing)))
