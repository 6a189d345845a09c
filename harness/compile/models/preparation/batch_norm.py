"""Batch norms as part of the convolution before them, which is what most exporters make of them.

TVM computes their scale and shift operator by operator in FoldConstant, each of them compiled for the host: that took
10.6 of the 11.4 s of a build.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from harness.compile.models.outline import NetworkView, attribute_of
from harness.compile.models.preparation.editing import NodeWriter, inner_reads, is_onnx, replace_nodes

if TYPE_CHECKING:
    from harness.compile.models.spec import Array


def fold_batch_norms(model: Any) -> str:
    """Scale the weights of a convolution that only a batch norm reads, and shift its bias."""
    graph, view, writer = model.graph, NetworkView(model), NodeWriter(model, "batch_norm")
    reads = Counter(name for node in graph.node for name in (*node.input, *inner_reads(node)))
    reads.update(value.name for value in graph.output)
    norms = {node.input[0]: node for node in graph.node if is_onnx(node, "BatchNormalization")}
    folded: dict[str, Any] = {}

    def fold(node: Any) -> list[Any] | None:
        if is_onnx(node, "BatchNormalization") and node.output[0] in folded:
            return []
        norm = norms.get(node.output[0]) if is_onnx(node, "Conv") and reads[node.output[0]] == 1 else None
        if norm is None or (numbers := _folded(node, norm, view)) is None:
            return None
        changed = type(node)()
        changed.CopyFrom(node)
        del changed.input[1:]
        changed.input.extend(writer.constant(array) for array in numbers)
        changed.output[0] = norm.output[0]
        folded[norm.output[0]] = norm
        return [changed]

    replace_nodes(graph, fold)
    return f"folded {len(folded)} BatchNormalization into convolutions" if folded else ""


def _folded(conv: Any, norm: Any, view: NetworkView) -> tuple[Array, Array] | None:
    """Weight and bias of a convolution with the batch norm in it; None if it cannot be, or not within rounding."""
    import numpy as np

    if attribute_of(norm, "training_mode", 0) or any(norm.output[1:]):
        return None
    arrays = [view.constant(conv, 1), *(view.constant(norm, place) for place in range(1, 5))]
    weight, *statistics = arrays
    if weight is None or any(array is None or array.dtype != np.float32 for array in arrays):
        return None
    bias = view.constant(conv, 2)
    if bias is None and len(conv.input) > 2 and conv.input[2]:
        return None
    gamma, beta, mean, variance = (array.astype(np.float64) for array in statistics if array is not None)
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(variance + attribute_of(norm, "epsilon", 1e-5))
        shift = beta + scale * ((0.0 if bias is None else bias.astype(np.float64)) - mean)
        scaled = (weight * scale.reshape(-1, *[1] * (weight.ndim - 1))).astype(np.float32)
        shifted = shift.astype(np.float32)
    return (scaled, shifted) if np.isfinite(scaled).all() and np.isfinite(shifted).all() else None
