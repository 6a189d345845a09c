"""ReverseSequence by index, where the lengths are known: TVM's importer does not have it."""

from __future__ import annotations

import math
from typing import Any

from harness.compile.models.outline import NetworkView, attribute_of
from harness.compile.models.preparation.constants import LARGEST_GROWTH_BYTES
from harness.compile.models.preparation.editing import NodeWriter, replace_nodes


def write_reversals(model: Any) -> str:
    """Gather each sequence backwards up to its length."""
    view, writer = NetworkView(model), NodeWriter(model, "reversed")

    def gathered(node: Any) -> list[Any] | None:
        lengths, shape = view.constant(node, 1), view.shape(node.input[0])
        if lengths is None or shape is None or 8 * math.prod(shape[:2]) > LARGEST_GROWTH_BYTES:
            return None
        _write(node, [int(length) for length in lengths], shape, writer)
        return writer.take()

    count = len(replace_nodes(model.graph, gathered, "ReverseSequence"))
    return f"wrote {count} ReverseSequence by index" if count else ""


def _write(node: Any, lengths: list[int], shape: tuple[int, ...], write: NodeWriter) -> None:
    times, batch = attribute_of(node, "time_axis", 0), attribute_of(node, "batch_axis", 1)
    steps, output = shape[times], node.output[0]
    orders = [[*range(length - 1, -1, -1), *range(length, steps)] for length in lengths]
    if len({*lengths}) == 1:
        write.add("Gather", node.input[0], write.integers(*orders[0]), axis=times, output=output)
        return
    backwards = []
    for place, order in enumerate(orders):
        row = write.slice(node.input[0], place, place + 1, batch)
        backwards.append(write.add("Gather", row, write.integers(*order), axis=times))
    write.add("Concat", *backwards, axis=batch, output=output)
