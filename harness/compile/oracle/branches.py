"""The branch that each If of a network takes on the inputs of a case: nothing proves the other one."""

from __future__ import annotations

from typing import Any

from onnx import numpy_helper

from harness.compile.models.outline import constants
from harness.compile.models.preparation.branches import WORDS, chosen_if, lift_branches
from harness.compile.models.preparation.order import remove_unread
from harness.compile.oracle.judge import Values
from harness.compile.oracle.onnx_runtime import OnnxRuntime
from harness.compile.oracle.truth import with_outputs


def branches_taken(model: Any, inputs: Values) -> list[str]:
    """Return which branch each If takes on these inputs, as `then of NAME`, and those of an If inside a branch.

    The branches are lifted in the model itself. An If inside a loop, which may take both, is not among them. Raises
    NoAnswer, Refusal.
    """
    lift_branches(model)
    conditions = {name: node.input[0] for node in model.graph.node if (name := chosen_if(node))}
    weights = constants(model)
    tensors = {**inputs} | {n: numpy_helper.to_array(weights[n]) for n in conditions.values() if n in weights}
    if inner := [name for name in dict.fromkeys(conditions.values()) if name not in tensors]:
        asked = with_outputs(model, inner)
        remove_unread(asked)
        tensors |= dict(zip(inner, OnnxRuntime(asked).ask(inputs), strict=True))
    words = {name: WORDS if tensors[condition].any() else WORDS[::-1] for name, condition in conditions.items()}
    skipped = tuple(f"{name}/{other}/" for name, (_, other) in words.items())
    return [f"{word} of {name}" for name, (word, _) in words.items() if not name.startswith(skipped)]
