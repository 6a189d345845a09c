"""Operators that lead to no output, and weights that nobody reads."""

from __future__ import annotations

from typing import Any

from harness.base.tables import counted
from harness.compile.models.preparation.editing import drop, inner_reads


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
