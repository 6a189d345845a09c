"""Loop and Scan round by round, where the number of rounds is known: TVM's importer has neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import numpy_helper

from harness.base.failures import ModelError
from harness.base.tables import counted
from harness.compile.models.outline import (
    RANDOM,
    NetworkView,
    all_nodes,
    attribute_of,
    constant_of,
    constants,
    is_onnx,
    node_name,
    opset_of,
)
from harness.compile.models.preparation.branches import take_constant_branches
from harness.compile.models.preparation.constants import compute_small, fold
from harness.compile.models.preparation.editing import NodeWriter, inner_reads, rewrite
from harness.compile.models.preparation.identities import remove_identities
from harness.compile.models.preparation.indices import along, cut
from harness.compile.models.preparation.recurrent import MOST_OPERATORS

SCAN_WITHOUT_BATCH = 9
"""First operator set in which a Scan has neither a batch nor lengths."""


def unroll_loops(model: Any) -> str:
    """Write loops round by round. Raises `ModelError` for one that would be too long."""
    loops, rounds = Counter[str](), Counter[str]()
    while unrolled := _unroll_once(model, rounds):  # a loop inside one is unrolled next
        loops += unrolled
        remove_identities(model)
        fold(model)
        take_constant_branches(model)
    return "; ".join(f"unrolled {loops[kind]} {kind} into {counted(rounds[kind], 'round')}" for kind in sorted(loops))


def _unroll_once(model: Any, rounds: Counter[str]) -> Counter[str]:
    def unroll(node: Any, view: NetworkView, write: NodeWriter) -> bool:
        body = _Body(model, node, write)
        count = _rounds_of_loop(model, node, body) if node.op_type == "Loop" else _rounds_of_scan(node, view) or None
        if count is None or (not count and any(map(view.is_read, filter(None, node.output[len(node.input) - 2 :])))):
            return False  # or without a round, whose stacks have no elements
        rounds[node.op_type] += count
        _require_few(node, count, body)
        (_write_loop if node.op_type == "Loop" else _write_scan)(node, count, body)
        return True

    return Counter(node.op_type for node in rewrite(model, "round", unroll, "Loop", "Scan"))


def _require_few(node: Any, count: int, body: _Body) -> None:
    total = count * len(list(all_nodes(body.graph)))
    if total > MOST_OPERATORS:
        raise ModelError(
            f"{node.op_type} {node_name(node)!r} of {count} rounds would become too long: it is unrolled into "
            f"{MOST_OPERATORS} operators at most, and would take {total}",
            hint="give a shorter sequence with --shape, or export the network for one round",
        )


class _Body:
    """What one round computes, written as often as there are rounds."""

    def __init__(self, model: Any, node: Any, writer: NodeWriter) -> None:
        self.graph, self.writer = attribute_of(node, "body", None), writer
        self.opset, self._place = opset_of(model), node_name(node)
        self._changing, self._still = _changing_and_still(self.graph)
        self._shared: dict[str, str] = {}
        """New names of what is the same in all rounds, and is written once."""

    def write(self, number: int, inputs: Sequence[str]) -> list[str]:
        """Write a round, by its number, that reads these; returns the names of its results."""
        if not self._shared:
            self._shared = self.writer.weights(self.graph)
            self._shared |= self.writer.copy(self._still, self._shared, self._place)
        names = dict(zip((value.name for value in self.graph.input), inputs, strict=True)) | self._shared
        names |= self.writer.copy(self._changing, names, f"{self._place}/{number}")
        return [names.get(value.name, value.name) for value in self.graph.output]


def _changing_and_still(graph: Any) -> tuple[list[Any], list[Any]]:
    """Return the operators of a body that depend on the round, and the others, each in their order."""
    moving, changing, still = {value.name for value in graph.input}, list[Any](), list[Any]()
    for node in graph.node:
        if moving & {*node.input, *inner_reads(node)} or is_onnx(node, *RANDOM):
            moving |= {*node.output}
            changing.append(node)
        else:
            still.append(node)
    return changing, still


def _write_loop(node: Any, count: int, body: _Body) -> None:
    write, going = body.writer, body.writer.constant(np.array(True))
    rounds = [([write.constant(np.array(number, np.int64)), going], list[str]()) for number in range(count)]
    _write_rounds(node, list(node.input[2:]), rounds, body)


def _write_scan(node: Any, count: int, body: _Body) -> None:
    sequences = attribute_of(node, "num_scan_inputs", 0)
    axes = attribute_of(node, "scan_input_axes", [0] * sequences)
    backwards = attribute_of(node, "scan_input_directions", [0] * sequences)
    scanned = list(zip(node.input[-sequences:], axes, backwards, strict=True))
    rounds = []
    for number in range(count):
        places = [(name, count - 1 - number if back else number, axis) for name, axis, back in scanned]
        rounds.append((list[str](), [cut(body.writer, *place, body.opset) for place in places]))
    _write_rounds(node, list(node.input[:-sequences]), rounds, body)


def _write_rounds(node: Any, states: list[str], rounds: Sequence[tuple[list[str], list[str]]], body: _Body) -> None:
    """Write rounds, each of which reads something before and after the states, and the results of them all."""
    stacks: list[list[str]] = []
    for number, (before, after) in enumerate(rounds):
        results = body.write(number, [*before, *states, *after])
        results = results[bool(before) :]  # the first of a Loop is whether to go on
        states = results[: len(states)]
        stacks.append(results[len(states) :])
    for output, state in zip(node.output, states, strict=False):
        if output:
            body.writer.add("Identity", state, output=output)
    outputs = node.output[len(states) :]
    axes = attribute_of(node, "scan_output_axes", [0] * len(outputs))
    backwards = attribute_of(node, "scan_output_directions", [0] * len(outputs))
    for output, parts, axis, back in zip(outputs, zip(*stacks, strict=True), axes, backwards, strict=False):
        if output:
            slices = [along(body.writer, "Unsqueeze", part, axis, body.opset) for part in parts]
            body.writer.add("Concat", *(slices[::-1] if back else slices), axis=axis, output=output)


def _rounds_of_scan(node: Any, view: NetworkView) -> int | None:
    """Return the length of what is scanned; None if it is not known, or an axis of a result counts from the last.

    Before operator set 9, a Scan has a batch and lengths.
    """
    if opset_of(view.model) < SCAN_WITHOUT_BATCH:
        return None
    sequences = attribute_of(node, "num_scan_inputs", 0)
    shape, axes = view.shape(node.input[-sequences]), attribute_of(node, "scan_input_axes", [0] * sequences)
    if shape is None or any(axis < 0 for axis in attribute_of(node, "scan_output_axes", [])):
        return None
    return int(shape[axes[0]])


def _rounds_of_loop(model: Any, node: Any, body: _Body) -> int | None:
    """Count the rounds by running what of them depends on no input; None if that does not tell where it ends."""
    outer = constants(model)
    most, going = (outer.get(name) if name else None for name in node.input[:2])
    if (node.input[0] and most is None) or (node.input[1] and going is None):
        return None
    limit = int(numpy_helper.to_array(most).item()) if most is not None else None
    if going is not None and not numpy_helper.to_array(going).any():
        return 0
    names = [value.name for value in body.graph.input]
    states = {name: outer[given] for name, given in zip(names[2:], node.input[2:], strict=True) if given in outer}
    needed = _needed(body.graph)
    read = {name for node in needed for name in node.input} | {value.name for value in body.graph.output}
    own = {tensor.name: tensor for tensor in body.graph.initializer}
    known = {name: value for name, value in (outer | own).items() if name in read}
    length, count = max(len(body.graph.node), 1), 0
    while limit is None or count < limit:
        if count * length > MOST_OPERATORS:
            return limit or count
        values = _values_of_round(model, body.graph, needed, known | states, count)
        count += 1
        results = [values.get(value.name) for value in body.graph.output]
        if results[0] is None:
            return None
        if not numpy_helper.to_array(results[0]).any():
            return count
        states = {name: value for name, value in zip(names[2:], results[1:], strict=False) if value is not None}
    return count


def _values_of_round(
    model: Any, graph: Any, needed: Sequence[Any], known: Mapping[str, Any], number: int
) -> dict[str, Any]:
    """Return what a round computes of constants and of its own number, by name."""
    values = dict(known)
    for value, array in zip(graph.input, (np.array(number, np.int64), np.array(True)), strict=False):
        values[value.name] = numpy_helper.from_array(array)
    for node in needed:
        if (constant := constant_of(node)) is not None:
            values[node.output[0]] = constant
        elif is_onnx(node, "Identity") and node.input[0] in values:
            values[node.output[0]] = values[node.input[0]]
        elif (results := compute_small(model, node, values)) is not None:
            values |= {name: numpy_helper.from_array(array) for name, array in results.items()}
    return values


def _needed(graph: Any) -> list[Any]:
    """Return the operators that the condition may depend on, in this round or a later one, in their order."""
    names, ends = [value.name for value in graph.input[2:]], [value.name for value in graph.output[1:]]
    end_of = dict(zip(names, ends, strict=False))
    read, before = {graph.output[0].name}, 0
    while len(read) > before:
        before = len(read)
        for node in reversed(graph.node):
            if read & {*node.output}:
                read |= {*node.input}
        read |= {end_of[name] for name in read & end_of.keys()}
    return [node for node in graph.node if read & {*node.output}]
