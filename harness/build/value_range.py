"""How large a network's numbers become on the way, in single precision: whether half precision can hold them at all.

Only in a worker: it imports TVM, and compiles the network with the result of every operator as an output.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from device_runner.device import Array

LARGEST_HALF = 65_504.0
"""The largest finite number of float16 (IEEE 754)."""


def measure_range(request: dict[str, Any], seed: int, given: str | dict[str, str], out: Path) -> dict[str, Any]:
    """Write the largest magnitude of any weight and of any operator's result, and whose it is.

    The inputs are the oracle's (`harness.build.oracle.answer`). Raises whatever TVM raises.
    """
    from onnx import numpy_helper

    from harness.build.artifact import RANGE
    from harness.build.not_finite import values_of
    from harness.build.oracle import inputs_of
    from harness.models.onnx_inputs import input_specs
    from harness.models.onnx_read import load

    model = load(Path(request["model_file"]))
    inputs = inputs_of(given, list(input_specs(model)), seed)
    weights = {f"weight {tensor.name!r}": numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kinds = {name: node.op_type for node in model.graph.node for name in node.output}
    results = {f"{kinds[name]} {name!r}": array for name, array in values_of(model, inputs).items()}
    (out / RANGE).write_text(json.dumps(largest({**weights, **results})), encoding="utf-8")
    return {}


def largest(values: Mapping[str, Array]) -> dict[str, Any]:
    """The largest finite magnitude, `{"largest": number, "at": name}`.

    What is infinite already, a mask on purpose say, stays so in any format.
    """
    import numpy as np

    found, at = 0.0, ""
    for name, array in values.items():
        if array.dtype.kind == "f" and array.size:
            magnitudes = np.abs(array.astype(np.float64))
            most = float(magnitudes.max(initial=0.0, where=np.isfinite(magnitudes)))
            found, at = (most, name) if most > found else (found, at)
    return {"largest": found, "at": at}


def beyond_half(file: Path) -> str:
    """One line for a person if the numbers that `measure_range` wrote about leave float16's range; else empty."""
    told = json.loads(file.read_text(encoding="utf-8"))
    if told["largest"] <= LARGEST_HALF:
        return ""
    return (
        f"the network leaves float16's range: {told['at']} reaches {told['largest']:.4g} in single precision, and the "
        f"largest float16 is {LARGEST_HALF:.0f}"
    )
