"""Shrinking: two searches, over operators and then over a network's details, and the steps that make it smaller.

Each step is only proposed: whether what is left is a network ONNX can tell, and whether it still fails is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from onnx import numpy_helper

from device_runner.deadline import Deadline
from device_runner.device import Array
from harness.tools.explain.reduced_network import SmallNetwork, cut, rebuild

FEWEST = (1, 2, 4)
"""Sizes of an axis that are tried first: one element, two, and as many as fill a texel."""


def steps(network: SmallNetwork) -> Iterator[tuple[str, SmallNetwork]]:
    """Yield all smaller networks that may be tried in place of one, and how each is come by."""
    for ways in (_outputs, _bypasses, _sizes, _operands, _attributes):
        for what, smaller in ways(network):
            if smaller and smaller.model != network.model:
                yield what, smaller


def _outputs(network: SmallNetwork) -> Iterator[tuple[str, SmallNetwork | None]]:
    """One output alone, where there are several."""
    names = [value.name for value in network.proto().graph.output]
    for name in names if len(names) > 1 else ():
        model = network.proto()
        output = next(value for value in network.proto().graph.output if value.name == name)
        del model.graph.output[:]
        model.graph.output.extend([output])
        yield f"only the output {name}", rebuild(model, network.inputs)


def _bypasses(network: SmallNetwork) -> Iterator[tuple[str, SmallNetwork | None]]:
    """Networks without an inner operator: the readers of its result read its input instead."""
    weights = {tensor.name for tensor in network.proto().graph.initializer}
    for place, node in enumerate(network.proto().graph.node):
        for name in [name for name in node.input if name and name not in weights]:
            model = network.proto()
            del model.graph.node[place]
            for other in model.graph.node:
                other.input[:] = [name if read == node.output[0] else read for read in other.input]
            for value in model.graph.output:
                value.name = name if value.name == node.output[0] else value.name
            yield f"without {node.op_type}, on {name} instead", rebuild(model, network.inputs)


def _operands(network: SmallNetwork) -> Iterator[tuple[str, SmallNetwork | None]]:
    """Networks without the last operand of an operator: a bias, a bound."""
    for place, node in enumerate(network.proto().graph.node):
        if len(node.input) > 1:
            model = network.proto()
            del model.graph.node[place].input[-1]
            yield f"{node.op_type} without {node.input[-1]}", rebuild(model, network.inputs)


def _attributes(network: SmallNetwork) -> Iterator[tuple[str, SmallNetwork | None]]:
    """Networks without an attribute of an operator, which then has its default."""
    for place, node in enumerate(network.proto().graph.node):
        for index, attribute in enumerate(node.attribute):
            model = network.proto()
            del model.graph.node[place].attribute[index]
            yield f"{node.op_type} without {attribute.name}", rebuild(model, network.inputs)


def _sizes(network: SmallNetwork) -> Iterator[tuple[str, SmallNetwork | None]]:
    """Axes of one size made smaller: those of the inputs behind the channels alone, then wherever that size occurs."""
    weights = [numpy_helper.to_array(tensor) for tensor in network.proto().graph.initializer]
    places = {size for array in network.inputs.values() for size in array.shape[2:]}
    everywhere = {size for array in (*network.inputs.values(), *weights) for size in array.shape}
    for size in sorted(places, reverse=True):
        for new in _smaller(size):
            yield f"{size} rows or columns to {new}", _resized(network, size, new, images_only=True)
    for size in sorted(everywhere, reverse=True):
        for new in _smaller(size):
            yield f"{size} to {new} everywhere", _resized(network, size, new, images_only=False)


def _smaller(size: int) -> list[int]:
    return [new for new in dict.fromkeys((*FEWEST, size // 2)) if 0 < new < size]


def _resized(network: SmallNetwork, size: int, new: int, *, images_only: bool) -> SmallNetwork | None:
    """Resize every axis of a size, and with it the number of groups and sizes among the operands."""

    def resize(axis: int, old: int) -> int:
        return new if old == size and (axis >= 2 or not images_only) else old

    model = network.proto()
    inputs = {name: cut(array, resize) for name, array in network.inputs.items()}
    if not images_only:
        for tensor in model.graph.initializer:
            smaller = _weight(numpy_helper.to_array(tensor), size, new)
            tensor.CopyFrom(numpy_helper.from_array(smaller, tensor.name))
        for node in model.graph.node:
            for attribute in node.attribute:
                _resize_attribute(attribute, size, new)
    return rebuild(model, inputs)


def _weight(array: Array, size: int, new: int) -> Array:
    """Return a weight with smaller axes; of whole numbers, which may be a shape, those that are such a size too."""
    smaller = cut(array, lambda _, old: new if old == size else old)
    return np.where(smaller == size, smaller.dtype.type(new), smaller) if array.dtype == np.int64 else smaller


def _resize_attribute(attribute: Any, size: int, new: int) -> None:
    """Resize an attribute: the groups of a depthwise convolution, or the shape of a kernel."""
    if attribute.name == "group" and attribute.i == size:
        attribute.i = new
    elif attribute.name == "kernel_shape":
        attribute.ints[:] = [new if old == size else old for old in attribute.ints]


Item = TypeVar("Item")


def minimal_subset(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool], deadline: Deadline) -> list[Item]:
    """Return a subset that still fails, from which no single item can be left out (delta debugging).

    At the deadline the smallest so far is the answer, here as in `shrink`.

    Source: Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002, with complements only.
    """
    subset, parts = list(items), 2
    while len(subset) > 1 and deadline.remaining_s:
        size = -(-len(subset) // parts)
        complements = [subset[:start] + subset[start + size :] for start in range(0, len(subset), size)]
        smaller = next((rest for rest in complements if rest and deadline.remaining_s and fails(rest)), None)
        if smaller is not None:
            subset, parts = smaller, max(parts - 1, 2)
        elif parts < len(subset):
            parts = min(len(subset), 2 * parts)
        else:
            break
    return subset


def shrink(
    network: SmallNetwork, fails: Callable[[SmallNetwork], bool], say: Callable[[str], None], deadline: Deadline
) -> SmallNetwork:
    """Return a network of which no step makes a smaller one that still fails."""
    tried = {network.key}
    while True:
        for what, smaller in steps(network):
            if not deadline.remaining_s:
                return network
            if smaller.key in tried:
                continue
            tried.add(smaller.key)
            if fails(smaller):
                say(f"{what}: still fails")
                network = smaller
                break
        else:
            return network
