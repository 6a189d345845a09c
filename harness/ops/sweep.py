"""The sweep: operators that networks for phones are made of, in the shapes and attributes on which schedules differ.

Many operators put nothing into an image on path `texture` unless the tensor that they read is in one already, and what
writes images is a convolution. So every operator on four-dimensional tensors comes twice: alone, and after a 1x1
convolution (`..._after_conv`). The expected outputs are those of ONNX's own reference implementation, not of TVM.

In float16 every tensor is of that format. The reference then computes in single precision, on inputs and weights that
were rounded, and rounds what comes out, also of the convolution before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.ops.network import OperatorNetwork
from harness.ops.sweep_table import ENTRIES, Entry, Shape

if TYPE_CHECKING:
    from device_runner.device import Array

OPSET, IR_VERSION = 20, 9
SEED = 20_260
AFTER_CONV = "_after_conv"
PLACES = ("ArgMax",)
"""Operators that answer where something is: which of two almost equal numbers is larger, a rounding before decides."""
SCALED = ("Resize",)
"""Operators whose float32 weights are scales, which stay what they are in any number format."""


def networks(_left_out: dict[str, int]) -> Iterator[OperatorNetwork]:
    """All of the table, those that read images twice."""
    for entry in ENTRIES:
        yield _network(entry, after_conv=False)
        if _read_by_images(entry):
            yield _network(entry, after_conv=True)


def half_networks(left_out: dict[str, int]) -> Iterator[OperatorNetwork]:
    """The same in float16."""
    for entry in ENTRIES:
        yield _network(entry, after_conv=False, half=True)
        if _read_by_images(entry) and entry.operator in PLACES:
            left_out["a rounding decides what is right"] = left_out.get("a rounding decides what is right", 0) + 1
        elif _read_by_images(entry):
            yield _network(entry, after_conv=True, half=True)


def _read_by_images(entry: Entry) -> bool:
    return len(entry.inputs[0]) == 4 and not entry.positive


def _network(entry: Entry, *, after_conv: bool, half: bool = False) -> OperatorNetwork:
    import numpy as np
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(SEED)

    def stored(array: Array) -> Array:
        return array.astype(np.float16) if half and array.dtype == np.float32 else array

    def fill(shape: Shape) -> Array:
        drawn = rng.standard_normal(shape, dtype=np.float32)
        return np.abs(drawn) + np.float32(0.1) if entry.positive else drawn

    names = [f"x{place}" for place in range(len(entry.inputs))]
    inputs = {name: stored(fill(shape)) for name, shape in zip(names, entry.inputs, strict=True)}
    weights = {f"w{place}": _weight(one, fill) for place, one in enumerate(entry.weights) if one is not None}
    if entry.operator not in SCALED:
        weights = {name: stored(array) for name, array in weights.items()}
    reads = [*names, *(f"w{place}" if one is not None else "" for place, one in enumerate(entry.weights))]
    made = [f"y{place}" for place in range(entry.outputs)]
    nodes = []
    if after_conv:
        channels = entry.inputs[0][1]
        weights["before"] = stored(fill((channels, channels, 1, 1)) / np.float32(channels**0.5))
        nodes.append(helper.make_node("Conv", ["x0", "before"], ["between"], name="before"))
        reads[0] = "between"
    nodes.append(helper.make_node(entry.operator, reads, made, name=entry.operator.lower(), **entry.attributes))
    values = {**inputs, **weights}
    for node in nodes:
        values |= {name: stored(array) for name, array in _answers(node, values).items()}
    outputs = {name: values[name] for name in made}
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    name = entry.name + AFTER_CONV if after_conv else entry.name
    data = _model(entry.name, nodes, inputs, outputs, tensors).SerializeToString(deterministic=True)
    return OperatorNetwork(name, entry.operator, data, inputs, outputs)


def _answers(node: Any, values: Mapping[str, Array]) -> dict[str, Array]:
    """What ONNX's reference makes of one operator, in single precision."""
    import numpy as np
    from onnx.reference import ReferenceEvaluator

    read = {name: values[name] for name in node.input if name}
    given = {name: array.astype(np.float32) if array.dtype == np.float16 else array for name, array in read.items()}
    answers = ReferenceEvaluator(_model(node.name, [node], given, dict.fromkeys(node.output), ())).run(None, given)
    return dict(zip(node.output, answers, strict=True))


def _model(
    name: str,
    nodes: Sequence[Any],
    given: Mapping[str, Array],
    made: Mapping[str, Array | None],
    weights: Sequence[Any],
) -> Any:
    """A network; outputs of no array are of no type yet."""
    from onnx import helper

    def told(name: str, array: Array | None) -> Any:
        if array is None:
            return helper.make_empty_tensor_value_info(name)
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    inputs, outputs = ([told(*item) for item in ends.items()] for ends in (given, made))
    graph = helper.make_graph(nodes, name, inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def _weight(one: Any, fill: Any) -> Array:
    """Random numbers of a shape, or the array itself."""
    import numpy as np

    array: Array = one if isinstance(one, np.ndarray) else fill(one)
    return array
