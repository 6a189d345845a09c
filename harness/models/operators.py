"""The operators of a network: what they are called, where they stand, and which of them TVM's importer lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from harness.failures import UnsupportedOperator

MOST_NAMED = 3
"""Operators of one kind that a line names."""


def all_nodes(graph: Any) -> Iterator[Any]:
    """Every node of a graph and of the graphs inside its nodes."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from all_nodes(inner)


def kind_of(node: Any) -> str:
    """The operator's name, with its domain if it is none of ONNX's own."""
    return str(node.op_type) if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"


def node_name(node: Any) -> str:
    """The node's name, or that of its result if it has none."""
    return str(node.name or next(filter(None, node.output), ""))


def unknown(model: Any, known: Collection[str]) -> dict[str, list[str]]:
    """Names of the nodes whose operator is not `known`, by operator."""
    found: dict[str, list[str]] = {}
    for node in all_nodes(model.graph):
        if node.op_type not in known:
            found.setdefault(kind_of(node), []).append(node_name(node))
    return dict(sorted(found.items()))


def require_known(model: Any, known: Collection[str]) -> None:
    """Raise `UnsupportedOperator`, which names all of them and where they stand, unless every operator is `known`."""
    if found := unknown(model, known):
        raise UnsupportedOperator(
            f"TVM's ONNX importer does not know {'; '.join(_told(kind, names) for kind, names in found.items())}",
            hint="export the model without it, or with an operator set that TVM knows",
            evidence="\n".join(f"{kind}: {', '.join(names)}" for kind, names in found.items()),
        )


def _told(kind: str, names: list[str]) -> str:
    shown = ", ".join(name[:60] for name in names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"{kind} ({shown}{more})"
