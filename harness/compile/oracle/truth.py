"""Who computes a network outside TVM: the first judge that can, and its answer.

A format of a tool has a judge of its own (`harness.base.tool.ModelFormat`). An ONNX network is computed by
onnxruntime and, where that lacks an operator or a number format of one, by ONNX's own reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import onnx

from device_runner.device import Array
from device_runner.names import load
from harness.base.failures import InputRefused, NoOutsideAnswer
from harness.compile.models.number_formats import with_plain_copies
from harness.compile.models.outline import copy_of, first_names, tensor_types
from harness.compile.models.spec import Original
from harness.compile.oracle.judge import Judge, NoAnswer, Refusal, Values


@dataclass(frozen=True)
class Ruling:
    """An answer, and who gave it."""

    judge: Judge
    outputs: list[Array]


def judge_original(original: Original, model: Any, inputs: Values) -> Ruling:
    """Ask about a model as a person has it. `inputs` are in the order of the model's own.

    `model` is the network in the file `original.onnx`. Raises NoOutsideAnswer, InputRefused.
    """
    judges = judges_of(model)
    if original.program:
        judges = [partial(load(original.judge), original.program, trust=original.trust), *judges]
    ruling = first_answer(judges, inputs)
    for index, output in enumerate(ruling.outputs):
        if not isinstance(output, np.ndarray):  # but a sequence, or a map
            raise NoOutsideAnswer(f"{ruling.judge.name} gives a {type(output).__name__} as output {index}")
    return ruling


def judges_of(model: Any) -> list[Callable[[], Judge]]:
    """Return what opens each judge of an ONNX network, in the order in which they are asked."""
    from harness.compile.oracle.onnx_reference import OnnxReference
    from harness.compile.oracle.onnx_runtime import FoldedOnnxRuntime, OnnxRuntime

    return [partial(judge, model) for judge in (OnnxRuntime, OnnxReference, FoldedOnnxRuntime)]


def first_answer(judges: Sequence[Callable[[], Judge]], inputs: Values) -> Ruling:
    """Return the answer of the first judge that has one.

    Raises InputRefused if two refuse the inputs, and NoOutsideAnswer if there is no answer for any other reason: what
    one judge alone refuses may be a lack of its own.
    """
    reasons: list[str] = []
    refusals: list[str] = []
    for opened in judges:
        try:
            judge = opened()
            return Ruling(judge, judge.ask(inputs))
        except NoAnswer as reason:
            reasons.append(str(reason))
        except Refusal as refusal:
            refusals.append(str(refusal))
    if len(refusals) > 1:
        shapes = first_names([f"{name} {list(array.shape)}" for name, array in inputs.items()])
        hint = f"give others than {shapes}, with `--shape NAME=SIZES`, `--input 'NAME=integers(0, 9)'` or a file"
        raise InputRefused(refusals[0], hint=hint, evidence="\n".join(refusals))
    raise NoOutsideAnswer("; ".join(dict.fromkeys(filter(None, refusals + reasons))))


def values_of(model: Any, inputs: Values) -> dict[str, Array]:
    """Return what every operator of an ONNX network makes of the inputs, where it is a tensor, by its name.

    Numbers in a format that numpy lacks are in one that it has (`harness.compile.models.number_formats`).

    Raises NoOutsideAnswer, InputRefused.
    """
    names = [name for node in model.graph.node if node.op_type != "Constant" for name in node.output if name]
    kinds = {name: kind.elem_type for name, kind in tensor_types(model).items()}
    plain, asked = with_plain_copies(model, names, kinds)
    outputs: Sequence[Any] = first_answer(judges_of(with_outputs(plain, asked)), inputs).outputs
    return {name: array for name, array in zip(names, outputs, strict=True) if isinstance(array, np.ndarray)}


def with_outputs(model: Any, names: Sequence[str]) -> Any:
    """Return the network with these tensors as its outputs."""
    whole = copy_of(model)
    del whole.graph.output[:]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    return whole
