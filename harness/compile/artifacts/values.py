"""A network's inputs, and what its operators make of them: how large numbers become, and where NaN comes from.

The network is run once more with the result of every operator as an output (`harness.compile.oracle.truth.values_of`),
in a worker only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import numpy_helper

from device_runner.device import Array
from harness.base.model import Distribution
from harness.compile.artifacts.artifact import RANGE
from harness.compile.models.input_files import load_inputs
from harness.compile.models.onnx_inputs import input_specs
from harness.compile.models.onnx_read import load
from harness.compile.models.preparation.editing import INTEGERS
from harness.compile.models.spec import InputSpec, seeded_inputs
from harness.compile.oracle.judge import Values
from harness.compile.oracle.truth import values_of


def inputs_of(
    values: str | Mapping[str, str], specs: Sequence[InputSpec], seed: int, *, finite: bool = True
) -> dict[str, Array]:
    """Return the inputs of a file, which are `finite` numbers, or those that are drawn, some of them as is said."""
    if isinstance(values, str):
        return load_inputs(Path(values), specs, finite=finite)
    return seeded_inputs(specs, seed, {name: Distribution.parse(text) for name, text in values.items()})


def first_not_finite(outputs: Sequence[Array]) -> int | None:
    """Index of the first output with an element that is NaN or infinite; None if there is none."""
    return next((index for index, output in enumerate(outputs) if not is_finite(output)), None)


def is_finite(array: Array) -> bool:
    """Return whether every element is a number. Integers always are."""
    return bool(np.isfinite(array.astype(np.float64)).all()) if array.dtype.kind not in "biu" else True


def count(array: Array) -> str:
    """`3 of 10 elements are NaN`."""
    wide = array.astype(np.float64)
    parts = {"NaN": int(np.isnan(wide).sum()), "infinite": int(np.isinf(wide).sum())}
    return " and ".join(f"{many} of {wide.size} elements are {what}" for what, many in parts.items() if many)


def named_origin(model: Any, values: Values, start: str) -> str:
    """Walk back from a value that is not finite to the operator all of whose inputs are; empty if it is finite.

    Not simply the first such operator of the network: the infinity of an attention mask, say, is on purpose and goes
    no further than its softmax.
    """
    makers = {name: (place, node) for place, node in enumerate(model.graph.node) for name in node.output if name}
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    bad = {name for name, value in values.items() if not is_finite(value)}
    if start not in bad or start not in makers:
        return ""
    place, node = makers[start]
    while earlier := [makers[name] for name in node.input if name in bad and name in makers]:
        place, node = min(earlier, key=lambda maker: maker[0])
    spoilt = [name for name in node.input if name in weights and not is_finite(numpy_helper.to_array(weights[name]))]
    because = f", whose weight {spoilt[0]!r} is not finite" if spoilt else ", whose inputs are finite"
    named = f" {node.name!r}" if node.name else ""
    return (
        f"{node.op_type}{named} (operator {place + 1} of {len(model.graph.node)}, result {node.output[0]!r}){because}"
    )


def measure_range(job: Mapping[str, Any], out: Path) -> None:
    """Write the largest magnitude of any weight and of any operator's result, and whose it is.

    Products of integers and casts of integers, which are float32 in every precision, do not count. The inputs are the
    oracle's (`harness.compile.artifacts.oracle`). Raises NoOutsideAnswer, InputRefused.
    """
    model = load(Path(job["request"]["model_file"]))
    inputs = inputs_of(job["inputs"], input_specs(model), job["seed"], finite=False)  # the oracle asks for that
    values = {f"weight {tensor.name!r}": numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    makers = {name: node for node in model.graph.node for name in node.output}
    results = values_of(model, inputs)
    for name, array in results.items():
        cast = makers[name].op_type == "Cast" and results.get(makers[name].input[0], array).dtype.kind != "f"
        if not cast and not name.startswith(f"{INTEGERS}_"):
            values[f"{makers[name].op_type} {name!r}"] = array
    (out / RANGE).write_text(json.dumps(largest(values)), encoding="utf-8")


def largest(values: Mapping[str, Array]) -> dict[str, Any]:
    """Return the largest finite magnitude, `{"largest": number, "at": name}`.

    What is infinite already, a mask on purpose say, stays so in any format.
    """
    peak, at = 0.0, ""
    for name, array in values.items():
        if array.dtype.kind == "f" and array.size:
            magnitudes = np.abs(array.astype(np.float64))
            most = float(magnitudes.max(initial=0.0, where=np.isfinite(magnitudes)))
            peak, at = (most, name) if most > peak else (peak, at)
    return {"largest": peak, "at": at}
