"""The sweep: operators that networks for phones are made of, in the shapes and attributes on which schedules differ.

Many operators put nothing into an image on path `texture` unless the tensor that they read is in one already, and what
writes images is a convolution. So every operator on four-dimensional tensors comes twice: alone, and after a 1x1
convolution (`..._after_conv`). The expected outputs are those of ONNX's own reference implementation, not of TVM.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from harness.ops.network import OperatorNetwork
from harness.ops.sweep_table import ENTRIES, Entry, Shape

if TYPE_CHECKING:
    from device_runner.device import Array

OPSET, IR_VERSION = 20, 9
SEED = 20_260
AFTER_CONV = "_after_conv"


def networks(_left_out: dict[str, int]) -> Iterator[OperatorNetwork]:
    """All of the table, those that read images twice."""
    for entry in ENTRIES:
        yield _network(entry, after_conv=False)
        if len(entry.inputs[0]) == 4 and not entry.positive:
            yield _network(entry, after_conv=True)


def _network(entry: Entry, *, after_conv: bool) -> OperatorNetwork:
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper
    from onnx.reference import ReferenceEvaluator

    rng = np.random.default_rng(SEED)

    def fill(shape: Shape) -> Array:
        drawn = rng.standard_normal(shape, dtype=np.float32)
        return np.abs(drawn) + np.float32(0.1) if entry.positive else drawn

    names = [f"x{place}" for place in range(len(entry.inputs))]
    inputs = {name: fill(shape) for name, shape in zip(names, entry.inputs, strict=True)}
    weights = {f"w{place}": _weight(one, fill) for place, one in enumerate(entry.weights) if one is not None}
    reads = [*names, *(f"w{place}" if one is not None else "" for place, one in enumerate(entry.weights))]
    nodes = []
    if after_conv:
        channels = entry.inputs[0][1]
        weights["before"] = fill((channels, channels, 1, 1)) / np.float32(channels**0.5)
        nodes.append(helper.make_node("Conv", ["x0", "before"], ["between"], name="before"))
        reads[0] = "between"
    made = [f"y{place}" for place in range(entry.outputs)]
    nodes.append(helper.make_node(entry.operator, reads, made, name=entry.operator.lower(), **entry.attributes))
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape) for name, array in inputs.items()]

    def model(wanted: list[Any]) -> Any:
        graph = helper.make_graph(nodes, entry.name, given, wanted, tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)

    unknown = [helper.make_empty_tensor_value_info(name) for name in made]
    answers = dict(zip(made, ReferenceEvaluator(model(unknown)).run(None, inputs), strict=True))
    kinds = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in answers.items()
    ]
    name = entry.name + AFTER_CONV if after_conv else entry.name
    data = model(kinds).SerializeToString(deterministic=True)
    return OperatorNetwork(name, entry.operator, data, inputs, answers)


def _weight(one: Any, fill: Any) -> Array:
    """Random numbers of a shape, or the array itself."""
    import numpy as np

    array: Array = one if isinstance(one, np.ndarray) else fill(one)
    return array
