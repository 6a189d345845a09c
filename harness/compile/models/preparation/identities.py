"""Operators that pass on what they read: Identity, Dropout of inference, Split into one part."""

from __future__ import annotations

from typing import Any

from harness.compile.models.outline import NetworkView, is_onnx
from harness.compile.models.preparation.editing import describe, drop, inner_reads, rename


def remove_identities(model: Any) -> str:
    """Remove operators that pass on their input. One from an input to an output of the network has to stay."""
    graph, view = model.graph, NetworkView(model)
    outputs = {value.name for value in graph.output}
    made = {name for node in graph.node for name in node.output}
    read_inside = {name for node in graph.node for name in inner_reads(node)}
    read = {name for node in graph.node for name in node.input} | outputs | read_inside
    new_name: dict[str, str] = {}
    removed: list[Any] = []
    for node in graph.node:
        if not _passes_through(view, node, read):
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
    text = describe("removed {}", removed)
    drop(graph.node, removed)
    for node in graph.node:
        rename(node, new_name)
    return text


def _passes_through(view: NetworkView, node: Any, read: set[str]) -> bool:
    if is_onnx(node, "Split"):
        return len(node.output) == 1
    if not is_onnx(node, "Identity", "Dropout") or any(name in read for name in node.output[1:] if name):
        return False
    training = view.constant(node, 2)  # flag of a dropout, which may be computed
    return not "".join(node.input[2:]) or (training is not None and not training.any())
