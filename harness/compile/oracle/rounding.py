"""What rounding does to a network's answer: it is computed once more with every number moved by a few units.

Each input, each weight and each operator's result is multiplied with a random factor next to 1. How far the outputs
move says how much the network magnifies rounding: a difference of large numbers, a variance next to 0, or a hundred
layers make 1e-3 of 1e-7. Whoever adds in another order is off by about as much (Monte Carlo arithmetic: Parker, Pierce
and Eggert, Computing in Science & Engineering 2, 2000).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.compile.models.outline import attribute_of, static_shape, tensor_types
from harness.compile.oracle.distance import peak_and_rms
from harness.compile.oracle.onnx_runtime import OnnxRuntime

if TYPE_CHECKING:
    from device_runner.device import Array
    from harness.compile.oracle.judge import Values

    Types = Mapping[str, Any]

AMOUNT = 2.0**-21
"""Most that a number is moved, relative to itself: four units in the last place of float32."""
HALF_AMOUNT = 2.0**-8
"""The same of float16: 2^13 times as far, as its units are."""
HALF = 2.5e-3
"""Least movement of a network in half precision: an eighth of the tolerance of such cases."""
DRAWS = 2
"""How often all numbers are moved; the larger result counts."""
_BY_VALUE = ("Clip", "Pad", "Resize", "Upsample", "Range", "OneHot", "NonMaxSuppression", "TopK", "RoiAlign")
"""Operators that take more than data: bounds, scales and counts, which are kept as they are."""
_STEPS = ("Cast", "Floor", "Ceil", "Round", "Sign", "QuantizeLinear", "Equal", "Shape", "Size", "ConstantOfShape")
"""Operators that make steps of numbers, or of which nothing but the shape counts: what they take is kept."""


def measure_rounding(model: Any, inputs: Values, outputs: Sequence[Array]) -> list[float]:
    """Return how far each output moves, relative to its scale; 0 of integers, or if that cannot be computed."""
    import numpy as np

    types = tensor_types(model)
    found = np.full(len(outputs), HALF if _in_half(types) else 0.0)
    try:
        found = np.maximum(found, coordinate_rounding(model, types))
        moved = (OnnxRuntime(move_numbers(model, types, draw)).ask(inputs) for draw in range(DRAWS))
        found = np.maximum(found, _farthest(outputs, moved))
    except Exception:  # ONNX's shape inference and onnxruntime have errors of every kind
        pass
    return [0.0 if one.dtype.kind != "f" else float(each) for one, each in zip(outputs, found, strict=True)]


def measure_task_rounding(
    ask: Callable[[Sequence[Array]], list[Array]], inputs: Sequence[Array], outputs: Sequence[Array]
) -> list[float]:
    """Measure the rounding of one compiled function, of which only the inputs can be moved.

    In half precision they are moved as much farther as is allowed for that (`harness.base.suite.ROUNDING_FACTOR`).
    """
    import numpy as np

    half = any(array.dtype == np.float16 for array in inputs)
    found = _farthest(outputs, (ask(_move_arrays(inputs, draw)) for draw in range(DRAWS)))
    return [each * AMOUNT / HALF_AMOUNT if half else each for each in found]


def _move_arrays(arrays: Sequence[Array], draw: int) -> list[Array]:
    """Return every real number with a random factor next to 1."""
    import numpy as np

    rng = np.random.default_rng(draw)

    def move(array: Array) -> Array:
        amount = HALF_AMOUNT if array.dtype == np.float16 else AMOUNT
        moved: Array = array.astype(np.float64) * rng.uniform(1 - amount, 1 + amount, array.shape)
        return moved.astype(array.dtype)

    return [move(array) if array.dtype.kind == "f" else array for array in arrays]


def _farthest(outputs: Sequence[Array], moved: Iterable[Sequence[Array]]) -> list[float]:
    """Largest distance of each output from its answers to moved numbers."""
    distances = [[_distance(*pair) for pair in zip(answers, outputs, strict=True)] for answers in moved]
    return [max(each) for each in zip(*distances, strict=True)]


def coordinate_rounding(model: Any, types: Types) -> float:
    """Return how far off a pixel between two others may be because its own place is rounded; 0 without such pixels.

    Places in an image of n pixels are rounded to n 2^-23 of a pixel, and neighbours differ by about the image's scale.
    """
    places = {node.input[0] for node in model.graph.node if _between_pixels(node)}
    extents = [extent for name in places for extent in (static_shape(types.get(name)) or ())[2:]]
    return 2.0**-23 * max(extents, default=0)


def _in_half(types: Types) -> bool:
    from onnx import TensorProto

    return any(kind.elem_type == TensorProto.FLOAT16 for kind in types.values())


def _between_pixels(node: Any) -> bool:
    mode: str = attribute_of(node, "mode", "")
    if node.op_type in ("Resize", "Upsample"):
        return mode in ("linear", "cubic")
    return node.op_type == "RoiAlign" or (node.op_type == "GridSample" and mode != "nearest")


def move_numbers(model: Any, types: Types, draw: int) -> Any:
    """Return the network with a factor before every float32 input of every operator, by the tensors' types."""
    import onnx
    from onnx import TensorProto, helper

    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    graph = whole.graph
    moved: dict[str, str] = {}
    nodes: list[Any] = []

    def move(name: str) -> str:
        if name not in types or types[name].elem_type != TensorProto.FLOAT:
            return name
        if name not in moved:
            factor, moved[name] = f"{name}/factor", f"{name}/moved"
            seed = float(len(moved) + 100_000 * draw)
            bounds = {"low": 1 - AMOUNT, "high": 1 + AMOUNT}
            nodes.append(helper.make_node("RandomUniformLike", [name], [factor], seed=seed, **bounds))
            nodes.append(helper.make_node("Mul", [name, factor], [moved[name]]))
        return moved[name]

    for node in list(graph.node):
        taken = 0 if node.op_type in _STEPS else 1 if node.op_type in _BY_VALUE else len(node.input)
        taken = 0 if node.domain not in ("", "ai.onnx") else taken
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        for place in range(taken):
            copy.input[place] = move(node.input[place])
        nodes.append(copy)
    del graph.node[:], graph.value_info[:]
    graph.node.extend(nodes)
    return whole


def _distance(answer: Array, other: Array) -> float:
    """Return the larger of two relative distances: of the peaks, and of the root mean squares."""
    import numpy as np

    if answer.shape != other.shape:
        raise ValueError("another shape")
    if other.dtype.kind != "f" or other.size == 0:
        return 0.0
    wide = other.astype(np.float64)
    peak, rms = peak_and_rms(wide)
    largest_error, rms_error = peak_and_rms(answer.astype(np.float64) - wide)
    if not np.isfinite(largest_error) or not peak:
        return 0.0
    return max(largest_error / peak, rms_error / rms)
