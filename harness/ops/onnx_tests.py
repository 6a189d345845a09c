"""The node tests that come with the `onnx` package, each one operator with its inputs and expected outputs.

They hand every operand to the network as an input, also those that are constants in every real network and without
which no compiler knows the shape of the result: the shape of a Reshape, the axes of a reduction. Those become weights.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness.ops.network import OperatorNetwork

if TYPE_CHECKING:
    from device_runner.device import Array

CONSTANTS = {
    *("axes", "axis", "block_shape", "constant_value", "delta", "depth", "dft_length", "ends", "frame_length"),
    *("frame_step", "image_shape", "iou_threshold", "k", "limit", "max", "max_output_boxes_per_class", "min"),
    *("output_shape", "pads", "ratio", "repeats", "roi", "sample_rate", "scales", "score_threshold", "shape", "size"),
    *("sizes", "split", "start", "starts", "steps", "training_mode"),
}
"""What operators' schemas call operands that decide what is computed, not on what."""
NUMBERS = {
    *("float32", "float64", "float16", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
}
"""Number formats that numpy has; the others of ONNX (bfloat16, float8, int4) cannot be handed to a device yet."""


def networks(left_out: dict[str, int]) -> Iterator[OperatorNetwork]:
    """All that have one operator, static shapes and finite numbers."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators overflow on purpose
        tests = load_model_tests(kind="node")
    for test in tests:
        network = _network(test)
        if isinstance(network, str):
            left_out[network] = left_out.get(network, 0) + 1
        else:
            yield network


def _network(test: Any) -> OperatorNetwork | str:
    """The test as a network, or why it is left out."""
    graph = test.model.graph
    if re.search(r"_expanded(_|$)", test.name) or len(graph.node) != 1:
        return "an operator expanded into others"
    if graph.node[0].domain not in ("", "ai.onnx"):
        return "of another domain than ai.onnx"
    if not all(_is_static_tensor(value) for value in (*graph.input, *graph.output)):
        return "no tensors of static shape"
    (given, expected), *_ = test.data_sets
    inputs = {value.name: array for value, array in zip(graph.input, given, strict=True)}
    outputs = {value.name: array for value, array in zip(graph.output, expected, strict=True)}
    if any(why := _unusable(array) for array in (*inputs.values(), *outputs.values())):
        return why
    model, left = _with_constants(test.model, inputs)
    if not left:
        return "without an input"
    name = re.sub(r"[^a-z0-9_]+", "_", test.name.removeprefix("test_").lower())
    return OperatorNetwork(name, graph.node[0].op_type, model.SerializeToString(deterministic=True), left, outputs)


def _is_static_tensor(value: Any) -> bool:
    kind = value.type
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return False
    return all(dim.HasField("dim_value") for dim in kind.tensor_type.shape.dim)


def _unusable(array: Any) -> str:
    """Why an array can be no input or expected output; empty if it can."""
    import numpy as np

    if not isinstance(array, np.ndarray | np.generic) or str(array.dtype) not in NUMBERS:
        return "number formats that numpy lacks"
    if not array.size:
        return "empty tensors"
    return "" if array.dtype.kind != "f" or np.isfinite(array).all() else "NaN or infinity"


def _with_constants(model: Any, inputs: Mapping[str, Array]) -> tuple[Any, dict[str, Array]]:
    """The model with what decides the computation as weights, and the inputs that are left."""
    import onnx

    node = model.graph.node[0]
    opset = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    formal = onnx.defs.get_schema(node.op_type, opset).inputs
    fixed = {name for place, name in enumerate(node.input) if formal[min(place, len(formal) - 1)].name in CONSTANTS}
    made = onnx.ModelProto()
    made.CopyFrom(model)
    made.ir_version = max(made.ir_version, 4)  # in which weights need not be inputs, too
    kept = [value for value in made.graph.input if value.name not in fixed]
    del made.graph.input[:]
    made.graph.input.extend(kept)
    weights = {name: inputs[name] for name in inputs if name in fixed}
    made.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return made, {name: array for name, array in inputs.items() if name not in fixed}
