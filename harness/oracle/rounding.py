"""What rounding does to a network's answer: it is computed once more with every number moved by a few units.

Each input, each weight and each operator's result is multiplied with a random factor next to 1. How far the outputs
move says how much the network magnifies rounding: a difference of large numbers, a variance next to 0, or a hundred
layers make 1e-3 of 1e-7. Whoever adds in another order is off by about as much (Monte Carlo arithmetic: Parker, Pierce
and Eggert, Computing in Science & Engineering 2, 2000).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.models.outline import static_shape, tensor_types
from harness.oracle.onnx_runtime import OnnxRuntime

if TYPE_CHECKING:
    from device_runner.device import Array
    from harness.oracle.judge import Values

AMOUNT = 2.0**-21
"""By how much a number is moved at most, relative to itself: four units in the last place of float32."""
HALF = 2.5e-3
"""At least so far a network moves that is itself in half precision: an eighth of what such cases are allowed."""
DRAWS = 2
"""How often all numbers are moved; the larger result counts."""
_BY_VALUE = ("Clip", "Pad", "Resize", "Upsample", "Range", "OneHot", "NonMaxSuppression", "TopK", "RoiAlign")
"""Operators that take more than data: bounds, scales and counts, which are kept as they are."""
_STEPS = ("Cast", "Floor", "Ceil", "Round", "Sign", "QuantizeLinear", "Equal", "Shape", "Size", "ConstantOfShape")
"""Operators that make steps of numbers, or of which nothing but the shape counts: what they take is kept."""


def measure_rounding(model: Any, inputs: Values, outputs: Sequence[Array]) -> list[float]:
    """How far each output moves, relative to its scale; 0 of integers, or if that cannot be computed."""
    import numpy as np

    found = np.full(len(outputs), HALF if _in_half(model) else 0.0)
    try:
        found = np.maximum(found, coordinate_rounding(model))
        for draw in range(DRAWS):
            moved = OnnxRuntime(move_numbers(model, draw)).ask(inputs)
            found = np.maximum(found, [_distance(*pair) for pair in zip(moved, outputs, strict=True)])
    except Exception:  # ONNX's shape inference and onnxruntime have errors of every kind
        pass
    return [0.0 if one.dtype.kind != "f" else float(each) for one, each in zip(outputs, found, strict=True)]


def coordinate_rounding(model: Any) -> float:
    """How far off a pixel between two others may be because its own place is rounded; 0 without such pixels.

    Places in an image of n pixels are rounded to n 2^-23 of a pixel, and neighbours differ by about the image's scale.
    """
    places = {node.input[0] for node in model.graph.node if _between_pixels(node)}
    kinds = tensor_types(model) if places else {}
    extents = [extent for name in places for extent in (static_shape(kinds.get(name)) or ())[2:]]
    return 2.0**-23 * max(extents, default=0)


def _in_half(model: Any) -> bool:
    from onnx import TensorProto

    return any(kind.elem_type == TensorProto.FLOAT16 for kind in tensor_types(model).values())


def _between_pixels(node: Any) -> bool:
    mode = next((one.s for one in node.attribute if one.name == "mode"), b"")
    if node.op_type in ("Resize", "Upsample"):
        return mode in (b"linear", b"cubic")
    return node.op_type == "RoiAlign" or (node.op_type == "GridSample" and mode != b"nearest")


def move_numbers(model: Any, draw: int) -> Any:
    """The network with a factor before every float32 input of every operator."""
    import onnx
    from onnx import TensorProto, helper

    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    graph = whole.graph
    kinds = {name: kind.elem_type for name, kind in tensor_types(model).items()}
    moved: dict[str, str] = {}
    nodes: list[Any] = []

    def move(name: str) -> str:
        if kinds.get(name) != TensorProto.FLOAT:
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
    """The larger of two shares: of the largest error in the peak, and of its root mean square in that of the output."""
    import numpy as np

    if answer.shape != other.shape:
        raise ValueError("another shape")
    if other.dtype.kind != "f" or other.size == 0:
        return 0.0
    wide = other.astype(np.float64)
    error = np.abs(answer.astype(np.float64) - wide)
    peak, rms = float(np.abs(wide).max()), float(np.sqrt(np.mean(np.square(wide))))
    if not np.isfinite(error).all() or not peak or not rms:
        return 0.0
    return max(float(error.max()) / peak, float(np.sqrt(np.mean(np.square(error)))) / rms)
