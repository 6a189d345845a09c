"""Decisions inside a network: a number that is rounded, the largest of several, a threshold.

A right answer may decide otherwise than the judge where the two alternatives lie within a rounding of each other, and
nowhere else. So the two sides of a decision are looked at apart: what is computed with the decisions as the judge takes
them, and how far the answer moves when what is compared is off by as much as it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from onnx import helper, numpy_helper

from device_runner.device import Array
from harness.compile.models.outline import copy_of, is_onnx
from harness.compile.oracle.judge import Values
from harness.compile.oracle.operands import CHOOSING, COMPARING, SELECTING, compared_operands, decisions

DRAWS = 8
"""How often what is compared is moved by chance: to opposite sides in turn, so that one of each pair crosses a tie."""
ALIKE = tuple(2.0**-step for step in range(9))
"""Shares of the distance by which all numbers are moved alike, to both sides: where a tanh is saturated, a thousand
lie at one tie and cross it together, and how many do depends on the distance."""


def compared_names(model: Any) -> list[str]:
    """Return the tensors that decisions compare, each once, without the network's weights."""
    weights = {tensor.name for tensor in model.graph.initializer}
    names = [node.input[place] for node in model.graph.node for place in compared_operands(node)[: len(node.input)]]
    return [name for name in dict.fromkeys(names) if name and name not in weights]


def chooses(model: Any, output: str) -> bool:
    """Return whether an output says where something is, and is not rounded behind: its integers are then names."""
    makers = {name: node for node in model.graph.node for name in node.output}
    pending = [output]
    while pending:
        node = makers.pop(name := pending.pop(), None)
        if node is not None and node.op_type in CHOOSING and name in decisions(node):
            return True
        pending += [] if node is None or is_onnx(node, "QuantizeLinear", "DynamicQuantizeLinear") else node.input
    return False


def compared_with_themselves(
    model: Any, compared: Values, values_of: Callable[[Sequence[str]], Values]
) -> Iterator[tuple[str, Array]]:
    """Yield compared tensors, with which of their numbers meet themselves: `Equal(MaxPool(x), x)` at each peak.

    Both sides have the same number, chosen from the same tensor, and no rounding comes between them. A number that the
    tensor has twice may meet its double, which was rounded for itself.
    """
    chosen: dict[str, set[str]] = {}
    weights = {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        origins = [chosen.get(name, {name} - weights) for name in node.input]
        if is_onnx(node, *SELECTING):
            chosen.update(dict.fromkeys(node.output, set[str]().union(*origins)))
        elif is_onnx(node, *COMPARING) and origins[0] & origins[1] and {*node.input} <= compared.keys():
            first, second = (compared[name] for name in node.input)
            numbers = values_of(sorted(origins[0] & origins[1])).values()
            distinct, counts = np.unique(np.concatenate([array.ravel() for array in numbers]), return_counts=True)
            same = (first == second) & ~np.isin(np.broadcast_arrays(first, second)[0], distinct[counts > 1])
            for name, shape in zip(node.input, (first.shape, second.shape), strict=True):
                extents = [1] * (same.ndim - len(shape)) + [*shape]
                axes = tuple(axis for axis, extent in enumerate(extents) if extent == 1)
                yield name, same.any(axis=axes, keepdims=True).reshape(shape)


def hold(model: Any, decided: Values) -> Any:
    """Return the network with these decisions as constants."""
    whole = copy_of(model)
    nodes = []
    for node in whole.graph.node:
        node.output[:] = [f"{name}/undecided" if name in decided else name for name in node.output]
        if not all(name.endswith("/undecided") for name in node.output if name):
            nodes.append(node)
    undecided = [copy_of(node) for node in nodes]
    del whole.graph.node[:], whole.graph.value_info[:]
    whole.graph.node.extend(undecided)
    whole.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in decided.items())
    return whole


def with_pushes(model: Any, compared: Values) -> Any:
    """Return the network with an input for each of these tensors, `NAME/push`, that is added where it is compared."""
    whole = copy_of(model)
    nodes, pushed = list(whole.graph.node), set()
    del whole.graph.node[:], whole.graph.value_info[:]
    for name, array in compared.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        whole.graph.input.append(helper.make_tensor_value_info(f"{name}/push", kind, array.shape))
    for node in nodes:
        for place in compared_operands(node)[: len(node.input)]:
            if (name := node.input[place]) in compared:
                if name not in pushed:
                    pushed.add(name)
                    whole.graph.node.append(helper.make_node("Add", [name, f"{name}/push"], [f"{name}/pushed"]))
                node.input[place] = f"{name}/pushed"
        whole.graph.node.append(node)
    return whole


def pushes(distances: Values) -> Iterator[Values]:
    """Yield the inputs of each draw, which push by up to these distances."""
    for pair in range(DRAWS // 2 + len(ALIKE)):
        chance, drawn = np.random.default_rng(pair), pair < DRAWS // 2
        by: dict[str, Array] = {}
        for name, distance in distances.items():
            share: Any = chance.uniform(-1, 1, distance.shape) if drawn else ALIKE[pair - DRAWS // 2]
            by[f"{name}/push"] = np.asarray(share * distance, distance.dtype)  # of a scalar, numpy makes a number
        yield by
        yield {name: np.asarray(np.negative(push)) for name, push in by.items()}
