"""What rounding does to a network's answer: it is computed once more with every number moved by a few units.

Each input, each weight and each operator's result is multiplied with a random factor next to 1. How far the outputs
move says how much the network magnifies rounding: a difference of large numbers, a variance next to 0, or a hundred
layers make 1e-3 of 1e-7. Whoever adds in another order is off by about as much (Monte Carlo arithmetic: Parker, Pierce
and Eggert, Computing in Science & Engineering 2, 2000).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from device_runner.device import Array
from harness.compile.models.outline import Types, attribute_of, copy_of, inner_graphs, is_onnx, static_shape
from harness.compile.oracle.exact import keeps_whole
from harness.compile.oracle.leeway import HALVES, SINGLE, peak_and_rms
from harness.compile.oracle.operands import SELECTING, data_operands

Amounts = Mapping[str, float]

AMOUNT = {SINGLE: 2.0**-21, HALVES: 2.0**-10}
"""Most that a number is moved, relative to itself: four units in the last place of float32, and one of float16. A
network that is nearly linear moves 2^11 times as far by the second. One with a bound or a threshold does not."""
_IN_SINGLE = {"": AMOUNT[SINGLE]}
DRAWS = 2
"""How often all numbers are moved; the larger result counts."""


def farthest(outputs: Sequence[Array], answers: Iterable[Sequence[Array]]) -> list[Array]:
    """Return how far each number of each output is from other answers at most.

    Where an answer is not finite and the output is, the number says nothing: it counts as the farthest of its output.
    All are NaN if none is finite.
    """
    largest = [np.full(output.shape, np.nan) for output in outputs]
    for answer in answers:
        for distances, output, other in zip(largest, outputs, answer, strict=True):
            np.fmax(distances, _distances(output, other), out=distances)
    for distances in largest:
        if distances.size and not np.isnan(distances).all():
            distances[np.isnan(distances)] = np.nanmax(distances)
    return [distances.astype(np.float32) for distances in largest]


def _distances(output: Array, other: Array) -> Array:
    """Return how far two answers lie apart, NaN where only one is finite."""
    if output.shape != other.shape:
        raise ValueError("another shape")
    mine, theirs = output.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        distance: Array = np.where((mine == theirs) | (np.isnan(mine) & np.isnan(theirs)), 0.0, np.abs(mine - theirs))
    distance[np.isinf(distance)] = np.nan
    return distance


def relative_movement(moved: Array, output: Array) -> float:
    """Return the larger of two relative distances: of the peaks, and of the root mean squares. 0 of integers."""
    if output.dtype.kind != "f" or output.size == 0:
        return 0.0
    wide = output.astype(np.float64)
    peak, rms = peak_and_rms(np.where(np.isfinite(wide), wide, 0.0))
    farthest_one, farthest_rms = peak_and_rms(moved.astype(np.float64))
    return max(farthest_one / peak, farthest_rms / rms) if peak else 0.0


def coordinate_rounding(model: Any, types: Types) -> float:
    """Return how far off a pixel between two others may be because its own place is rounded; 0 without such pixels.

    It is a multiple of `AMOUNT`. Places in an image of n pixels are rounded to n units in the last place, of which
    `AMOUNT` has four, and neighbours differ by about the image's scale.
    """
    places = {node.input[0] for node in model.graph.node if _between_pixels(node)}
    extents = [extent for name in places for extent in (static_shape(types.get(name)) or ())[2:]]
    return max(extents, default=0) / 4


def in_half(types: Types) -> bool:
    """Return whether a network has numbers in half precision."""
    return any(kind.elem_type == TensorProto.FLOAT16 for kind in types.values())


def _between_pixels(node: Any) -> bool:
    mode: str = attribute_of(node, "mode", "")
    if node.op_type in ("Resize", "Upsample"):
        return mode in ("linear", "cubic")
    return node.op_type == "RoiAlign" or (node.op_type == "GridSample" and mode != "nearest")


def move_numbers(
    model: Any, types: Types, draw: int, exact: Set[str] = frozenset(), amounts: Amounts = _IN_SINGLE
) -> Any:
    """Return the network with a factor before every float32 number that an operator computes with.

    That includes the branches of an `If` and the bodies of loops and scans. What is computed of `exact` numbers alone
    is exact, too, and stays. A tensor's numbers are moved by the amount of its name, or by that of no name. What is
    subtracted from itself is moved twice: a program may round the one product and not the other.
    """
    whole = copy_of(model)
    seeds = map(float, itertools.count(100_000 * draw))
    _move_graph(whole.graph, types, seeds, {}, exact, amounts)
    return whole


def _move_graph(
    graph: Any, types: Types, seeds: Iterable[float], moved: Mapping[str, str], exact: Set[str], amounts: Amounts
) -> None:
    """Move the numbers of one graph. `moved` names those that the graphs around it have moved before."""
    moved, nodes = dict(moved), list(graph.node)
    sources = {value.name for value in (*graph.input, *graph.initializer)}
    del graph.node[:], graph.value_info[:]

    def move(name: str, again: str = "") -> str:
        if name not in types or types[name].elem_type != TensorProto.FLOAT:
            return name
        if name + again not in moved:
            factor, moved[name + again] = f"{name}/factor{again}", f"{name}/moved{again}"
            amount = amounts.get(name, amounts[""])
            bounds = {"low": 1 - amount, "high": 1 + amount, "seed": next(iter(seeds))}
            graph.node.append(helper.make_node("RandomUniformLike", [name], [factor], **bounds))
            graph.node.append(helper.make_node("Mul", [name, factor], [moved[name + again]]))
        return moved[name + again]

    for node in nodes:
        if is_selected := is_onnx(node, *SELECTING, "Constant") and {*filter(None, node.input)} <= sources:
            sources |= {*node.output}  # nothing is rounded before something is computed
        cancels = is_onnx(node, "Sub") and node.input[0] == node.input[1] not in sources
        for place in () if is_selected or keeps_whole(node, exact) else data_operands(node):
            again = " again" if cancels and place else ""
            node.input[place : place + 1] = [move(name, again) for name in node.input[place : place + 1]]
        for inner in inner_graphs(node):
            _move_graph(inner, types, seeds, moved, exact, amounts)
        graph.node.append(node)
