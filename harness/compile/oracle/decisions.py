"""Decisions inside a network: a number that is rounded, the largest of several, a threshold.

A right answer may decide otherwise than the judge where the two alternatives lie within a rounding of each other, and
nowhere else. So the two sides of a decision are looked at apart: what is computed with the decisions as the judge takes
them, and how far the answer moves when what is compared is off by as much as it may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harness.compile.oracle.operands import CHOOSING, compared_operands, decisions

if TYPE_CHECKING:
    from device_runner.device import Array
    from harness.compile.oracle.judge import Values

DRAWS = 8
"""How often what is compared is moved: in pairs of opposite directions, so that one of each pair crosses a tie."""


def decided_names(model: Any) -> list[str]:
    """Return the tensors that operators of the network decide, outside branches and bodies."""
    return [name for node in model.graph.node for name in decisions(node)]


def compared_names(model: Any) -> list[str]:
    """Return the tensors that decisions compare, each once, without the network's weights."""
    weights = {tensor.name for tensor in model.graph.initializer}
    names = [node.input[place] for node in model.graph.node for place in compared_operands(node)[: len(node.input)]]
    return [name for name in dict.fromkeys(names) if name and name not in weights]


def chooses(model: Any) -> bool:
    """Return whether it answers anywhere where something is: such integers are names, and not numbers."""
    return any(node.op_type in CHOOSING for node in model.graph.node)


def hold(model: Any, decided: Values) -> Any:
    """Return the network with these decisions as constants."""
    import onnx
    from onnx import numpy_helper

    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    nodes = []
    for node in whole.graph.node:
        node.output[:] = [f"{name}/undecided" if name in decided else name for name in node.output]
        if not all(name.endswith("/undecided") for name in node.output if name):
            nodes.append(node)
    undecided = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del whole.graph.node[:], whole.graph.value_info[:]
    whole.graph.node.extend(undecided)
    whole.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in decided.items())
    return whole


def push(model: Any, compared: Values, distances: Mapping[str, Array], draw: int) -> Any:
    """Return the network with what decisions compare pushed by up to these distances, by chance.

    An odd draw pushes in the opposite direction of the one before.
    """
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    nodes = list(whole.graph.node)
    del whole.graph.node[:], whole.graph.value_info[:]
    chance, sign, pushed = np.random.default_rng(draw // 2), (-1) ** draw, set()
    for name, distance in distances.items():
        by = sign * chance.uniform(-1, 1, distance.shape) * distance
        whole.graph.initializer.append(numpy_helper.from_array(by.astype(compared[name].dtype), f"{name}/push"))
    for node in nodes:
        for place in compared_operands(node)[: len(node.input)]:
            if (name := node.input[place]) in distances:
                if name not in pushed:
                    pushed.add(name)
                    whole.graph.node.append(helper.make_node("Add", [name, f"{name}/push"], [f"{name}/pushed"]))
                node.input[place] = f"{name}/pushed"
        whole.graph.node.append(node)
    return whole
