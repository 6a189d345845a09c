"""The networks that sets of operator cases are made of: the node tests of `onnx`, and the sweep.

The node tests come with the `onnx` package, each one operator with its inputs and expected outputs. They hand every
operand to the network as an input, also those that are constants in every real network and without which no compiler
knows the shape of the result: the shape of a Reshape, the axes of a reduction. Those become weights.

The sweep has operators that networks for phones are made of, in the shapes and attributes on which schedules differ.
Many operators put nothing into an image on path `texture` unless the tensor that they read is in one already, and what
writes images is a convolution. So every operator on four-dimensional tensors comes twice: alone, and after a 1x1
convolution (`..._after_conv`). The expected outputs are those of ONNX's own reference implementation, not of TVM. In
float16 every tensor is of that format. The reference then computes in single precision, on inputs and weights that were
rounded, and rounds what comes out, also of the convolution before.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from device_runner.device import Array
from harness.tools.ops.sweep_table import ENTRIES, OperatorEntry, Shape


@dataclass(frozen=True)
class OperatorNetwork:
    """A network about one operator, with what it is run on and what must come of it."""

    name: str
    """Name, of the characters `[a-z0-9_]`."""
    operator: str
    model: bytes
    inputs: Mapping[str, Array]
    """In the model's order."""
    outputs: Mapping[str, Array]
    """In the model's order."""


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


def node_tests(left_out: dict[str, int]) -> Iterator[OperatorNetwork]:
    """Yield all that have one operator, static shapes and finite numbers."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the generators overflow on purpose
        tests = load_model_tests(kind="node")
    for test in tests:
        network = _node_test(test)
        if isinstance(network, str):
            left_out[network] = left_out.get(network, 0) + 1
        else:
            yield network


def _node_test(test: Any) -> OperatorNetwork | str:
    """Return the test as a network, or why it is left out."""
    graph = test.model.graph
    if re.search(r"_expanded(_|$)", test.name) or len(graph.node) != 1:
        return "an operator expanded into others"
    if graph.node[0].domain not in ("", "ai.onnx"):
        return "of another domain than ai.onnx"
    if not all(_is_static_tensor(value) for value in (*graph.input, *graph.output)):
        return "no tensors of static shape"
    (arrays, expected), *_ = test.data_sets
    inputs = {value.name: array for value, array in zip(graph.input, arrays, strict=True)}
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
    """Return why an array can be no input or expected output; empty if it can."""
    if not isinstance(array, np.ndarray | np.generic) or str(array.dtype) not in NUMBERS:
        return "number formats that numpy lacks"
    if not array.size:
        return "empty tensors"
    return "" if array.dtype.kind != "f" or np.isfinite(array).all() else "NaN or infinity"


def _with_constants(model: Any, inputs: Mapping[str, Array]) -> tuple[Any, dict[str, Array]]:
    """Return the model with what decides the computation as weights, and the inputs that are left."""
    node = model.graph.node[0]
    opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    formal = onnx.defs.get_schema(node.op_type, opset).inputs
    fixed = {name for place, name in enumerate(node.input) if formal[min(place, len(formal) - 1)].name in CONSTANTS}
    model_copy = onnx.ModelProto()
    model_copy.CopyFrom(model)
    model_copy.ir_version = max(model_copy.ir_version, 4)  # in which weights need not be inputs, too
    inputs_left = [value for value in model_copy.graph.input if value.name not in fixed]
    del model_copy.graph.input[:]
    model_copy.graph.input.extend(inputs_left)
    weights = {name: inputs[name] for name in inputs if name in fixed}
    model_copy.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return model_copy, {name: array for name, array in inputs.items() if name not in fixed}


OPSET, IR_VERSION = 20, 9
SEED = 20_260
AFTER_CONV = "_after_conv"
PLACES = ("ArgMax",)
"""Operators that answer where something is: which of two almost equal numbers is larger, a rounding before decides."""
SCALED = ("Resize",)
"""Operators whose float32 weights are scales, which stay what they are in any number format."""


def sweep(_left_out: dict[str, int]) -> Iterator[OperatorNetwork]:
    """Yield all of the table, those that read images twice."""
    for entry in ENTRIES:
        yield _sweep_network(entry, after_conv=False)
        if _read_by_images(entry):
            yield _sweep_network(entry, after_conv=True)


def half_sweep(left_out: dict[str, int]) -> Iterator[OperatorNetwork]:
    """Yield the same in float16."""
    for entry in ENTRIES:
        yield _sweep_network(entry, after_conv=False, half=True)
        if _read_by_images(entry) and entry.operator in PLACES:
            left_out["a rounding decides what is right"] = left_out.get("a rounding decides what is right", 0) + 1
        elif _read_by_images(entry):
            yield _sweep_network(entry, after_conv=True, half=True)


def _read_by_images(entry: OperatorEntry) -> bool:
    return len(entry.inputs[0]) == 4 and not entry.positive


def _sweep_network(entry: OperatorEntry, *, after_conv: bool, half: bool = False) -> OperatorNetwork:
    rng = np.random.default_rng(SEED)

    def stored(array: Array) -> Array:
        return array.astype(np.float16) if half and array.dtype == np.float32 else array

    def fill(shape: Shape) -> Array:
        drawn = rng.standard_normal(shape, dtype=np.float32)
        return np.abs(drawn) + np.float32(0.1) if entry.positive else drawn

    names = [f"x{place}" for place in range(len(entry.inputs))]
    inputs = {name: stored(fill(shape)) for name, shape in zip(names, entry.inputs, strict=True)}
    weights = {
        f"w{place}": weight if isinstance(weight, np.ndarray) else fill(weight)
        for place, weight in enumerate(entry.weights)
        if weight is not None
    }
    if entry.operator not in SCALED:
        weights = {name: stored(array) for name, array in weights.items()}
    reads = [*names, *(f"w{place}" if weight is not None else "" for place, weight in enumerate(entry.weights))]
    names_out = [f"y{place}" for place in range(entry.outputs)]
    nodes = []
    if after_conv:
        channels = entry.inputs[0][1]
        weights["before"] = stored(fill((channels, channels, 1, 1)) / np.float32(channels**0.5))
        nodes.append(helper.make_node("Conv", ["x0", "before"], ["between"], name="before"))
        reads[0] = "between"
    nodes.append(helper.make_node(entry.operator, reads, names_out, name=entry.operator.lower(), **entry.attributes))
    values = {**inputs, **weights}
    for node in nodes:
        values |= {name: stored(array) for name, array in _answers(node, values).items()}
    outputs = {name: values[name] for name in names_out}
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    name = entry.name + AFTER_CONV if after_conv else entry.name
    data = _model(entry.name, nodes, inputs, outputs, tensors).SerializeToString(deterministic=True)
    return OperatorNetwork(name, entry.operator, data, inputs, outputs)


def _answers(node: Any, values: Mapping[str, Array]) -> dict[str, Array]:
    """Return what ONNX's reference makes of one operator, in single precision."""
    from onnx.reference import ReferenceEvaluator

    read = {name: values[name] for name in node.input if name}
    singles = {name: array.astype(np.float32) if array.dtype == np.float16 else array for name, array in read.items()}
    answers = ReferenceEvaluator(_model(node.name, [node], singles, dict.fromkeys(node.output), ())).run(None, singles)
    return dict(zip(node.output, answers, strict=True))


def _model(
    name: str,
    nodes: Sequence[Any],
    inputs_by_name: Mapping[str, Array],
    outputs_by_name: Mapping[str, Array | None],
    weights: Sequence[Any],
) -> Any:
    """Return a network; outputs of no array are of no type yet."""

    def value_info(name: str, array: Array | None) -> Any:
        if array is None:
            return helper.make_empty_tensor_value_info(name)
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    inputs, outputs = ([value_info(*item) for item in ends.items()] for ends in (inputs_by_name, outputs_by_name))
    graph = helper.make_graph(nodes, name, inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
