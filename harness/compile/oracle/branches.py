"""The branch that each If of a network takes on the inputs of a case: nothing proves the other one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.compile.models.outline import constants, copy_of
from harness.compile.models.preparation.branches import take_branches
from harness.compile.models.preparation.editing import is_onnx
from harness.compile.oracle.onnx_runtime import OnnxRuntime
from harness.compile.oracle.truth import with_outputs

if TYPE_CHECKING:
    from harness.compile.oracle.judge import Values


def branches_taken(model: Any, inputs: Values) -> list[str]:
    """Return which branch each If takes on these inputs, as `then of NAME`, and those of an If inside a branch.

    An If inside a loop, which may take both, is not among them. Raises NoAnswer, Refusal.
    """
    from onnx import numpy_helper

    plain, names = copy_of(model), list[str]()
    while choices := [node for node in plain.graph.node if is_onnx(node, "If")]:
        weights = constants(plain)
        conditions = [name for name in dict.fromkeys(node.input[0] for node in choices) if name not in weights]
        inner = [name for name in conditions if name not in inputs]
        values = OnnxRuntime(with_outputs(plain, inner)).ask(inputs) if inner else []
        tensors = {**inputs, **dict(zip(inner, values, strict=True))}
        for name in conditions:
            plain.graph.initializer.append(numpy_helper.from_array(tensors[name], f"{name}/taken"))
        for node in choices:
            node.input[0] = f"{node.input[0]}/taken" if node.input[0] in conditions else node.input[0]
        names += take_branches(plain)
    return names
