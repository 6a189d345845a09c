"""Which wrong operators the judge catches: one to five are put into a network, at several depths of it.

    python -m benchmarks.injected_faults [NETWORK, GROUP or FILE...] [--depths 8] [--together 8] [--precision float16]

Each fault is one that a compiler or a driver makes: a wrong epsilon, padding of another kind, a transposed 3x3 kernel,
one lane of four in place of all, a launch that is dropped. onnxruntime runs the network with it and without, and the
product's own judge compares the two with the tolerances of a case in float32, or of `--precision`. TVM is not needed.
Prints tables in Markdown, and every fault that changes an output by more than rounding does and is still not caught, by
name.

A network with more places for a fault than `--depths` is sampled evenly, from the first place to the last. Then two to
five faults by chance are put into it together, `--together` times each.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.known_networks import KnownNetwork, known_networks
from harness.base.case import RELATIVE_TOLERANCE, ROUNDING_FACTOR, Precision
from harness.compile.oracle.judge import NoAnswer, Refusal
from harness.compile.oracle.leeway import Measured
from harness.compile.oracle.leeway_measurement import measure_leeway
from harness.compile.oracle.onnx_runtime import OnnxRuntime
from harness.measure.correctness import compare_answers
from harness.measure.facts import Accuracy

if TYPE_CHECKING:
    from device_runner.device import Array

FLOAT32 = Precision.FLOAT32.value
MOST_TOGETHER = 5
LAUNCHES = ("Conv", "Gemm", "MatMul", "Relu", "Add")


@dataclass
class Graph:
    """A network whose weights are given to it like inputs, so that another weight or operator costs no new file."""

    model: onnx.ModelProto
    inputs: Mapping[str, Array]
    weights: dict[str, Array] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    other_inputs: Mapping[str, Array] = field(default_factory=dict)
    """What the inference before had."""

    def __post_init__(self) -> None:
        graph = onnx.shape_inference.infer_shapes(self.model).graph
        self.weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in self.model.graph.initializer}
        self.shapes = {
            value.name: tuple(extent.dim_value for extent in value.type.tensor_type.shape.dim)
            for value in (*graph.value_info, *graph.output)
        }

    @property
    def nodes(self) -> list[Any]:
        """The operators, in order."""
        return list(self.model.graph.node)

    def run(self, *edits: Edit) -> list[Array]:
        """Return the answer, with some operators replaced."""
        nodes, weights = self.nodes, dict(self.weights)
        for edit in sorted(edits, key=lambda edit: -edit.place):
            nodes[edit.place : edit.place + 1] = edit.nodes
            weights |= edit.weights
        return self._ask(nodes, weights, self.inputs, self.model.graph.output)

    @cached_property
    def before(self) -> Mapping[str, Array]:
        """What the inference before left in the buffers of launches that may be dropped."""
        names = [node.output[0] for node in self.nodes if node.op_type in LAUNCHES]
        ends = [onnx.ValueInfoProto(name=name) for name in names]
        return dict(zip(names, self._ask(self.nodes, self.weights, self.other_inputs, ends), strict=True))

    def _ask(
        self, nodes: Sequence[Any], weights: Mapping[str, Array], inputs: Mapping[str, Array], ends: Sequence[Any]
    ) -> list[Array]:
        used = {name for node in nodes for name in node.input}
        fed = {name: np.asarray(array) for name, array in weights.items() if name in used}
        kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in fed.items()}
        values = [helper.make_tensor_value_info(name, kinds[name], fed[name].shape) for name in fed]
        graph = helper.make_graph(nodes, "faulty", [*self.model.graph.input, *values], ends)
        model = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=8)
        return OnnxRuntime(model).ask({**inputs, **fed})


@dataclass(frozen=True)
class Edit:
    """What stands in place of one operator."""

    place: int
    nodes: Sequence[Any]
    weights: Mapping[str, Array] = field(default_factory=dict)


Fault = Callable[[Graph, Any], "tuple[Sequence[Any], Mapping[str, Array]] | None"]
"""The operators and weights in place of one operator; None where the fault does not apply."""


def _with(node: Any, *, inputs: Sequence[str] | None = None, kind: str = "", **attributes: Any) -> Any:
    """Return a copy of an operator with something changed."""
    old = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    made = helper.make_node(kind or node.op_type, list(node.input if inputs is None else inputs), list(node.output))
    new = attributes if kind else {**old, **attributes}
    made.attribute.extend(helper.make_attribute(name, value) for name, value in new.items())
    return made


def _attribute(node: Any, name: str, default: Any = None) -> Any:
    return next((helper.get_attribute_value(a) for a in node.attribute if a.name == name), default)


def _epsilon(factor: float) -> Fault:
    def fault(graph: Graph, node: Any) -> Any:
        if node.op_type in ("BatchNormalization", "LayerNormalization", "InstanceNormalization"):
            return [_with(node, epsilon=factor * _attribute(node, "epsilon", 1e-5))], {}
        small = graph.weights.get(node.input[1]) if node.op_type == "Add" else None
        if small is not None and small.size == 1 and 0 < small.item() <= 1e-4:
            other = np.full(small.shape, factor * small.item(), small.dtype)
            name = f"{node.output[0]}/epsilon"
            return [_with(node, inputs=[node.input[0], name])], {name: other}
        return None

    return fault


def _pads(node: Any) -> list[int] | None:
    pads = _attribute(node, "pads")
    return list(pads) if pads and any(pads) and len(pads) == 4 else None


def _padding(mode: str, kinds: Sequence[str] = ("Conv",)) -> Fault:
    def fault(graph: Graph, node: Any) -> Any:
        if node.op_type not in kinds or not (pads := _pads(node)):
            return None
        shape = graph.shapes.get(node.input[0]) or (0, 0, 9, 9)
        if mode == "reflect" and max(pads) >= min(shape[2:]):
            return None
        padded, name = f"{node.output[0]}/padded", f"{node.output[0]}/widths"
        before = helper.make_node("Pad", [node.input[0], name], [padded], mode=mode)
        widths = np.array([0, 0, *pads[:2], 0, 0, *pads[2:]])
        return [before, _with(node, inputs=[padded, *node.input[1:]], pads=[0] * 4)], {name: widths}

    return fault


def _shifted(graph: Graph, node: Any) -> Any:
    pads = _pads(node)
    if node.op_type != "Conv" or not pads or min(pads) < 1:
        return None
    return [_with(node, pads=[pads[0] - 1, pads[1] - 1, pads[2] + 1, pads[3] + 1])], {}


def _count_of_pads(graph: Graph, node: Any) -> Any:
    if node.op_type != "AveragePool" or not _pads(node):
        return None
    return [_with(node, count_include_pad=1 - _attribute(node, "count_include_pad", 0))], {}


def _transposed(graph: Graph, node: Any) -> Any:
    weight = graph.weights.get(node.input[1]) if node.op_type == "Conv" else None
    if weight is None or weight.shape[2:] != (3, 3):
        return None
    return [node], {node.input[1]: np.ascontiguousarray(weight.swapaxes(2, 3))}


def _after(node: Any, kind: str, *inputs: str, **attributes: Any) -> list[Any]:
    """Return an operator with another one behind it."""
    made, (out, *_) = _with(node), node.output
    made.output[0] = f"{out}/all"
    return [made, helper.make_node(kind, [f"{out}/all", *inputs], [out], **attributes)]


def _lanes(choose: Callable[[Any], Any]) -> Fault:
    """Return what takes other channels than those of a convolution."""

    def fault(graph: Graph, node: Any) -> Any:
        weight = graph.weights.get(node.input[1]) if node.op_type == "Conv" else None
        if weight is None or weight.shape[0] % 4:
            return None
        name = f"{node.output[0]}/lanes"
        return _after(node, "Gather", name, axis=1), {name: choose(np.arange(weight.shape[0]))}

    return fault


def _swapped(channels: Any) -> Any:
    """Swap two channels in the middle."""
    middle, made = channels.size // 2, channels.copy()
    made[[middle - 1, middle]] = made[[middle, middle - 1]]
    return made


def _weight_off(graph: Graph, node: Any) -> Any:
    weight = graph.weights.get(node.input[1]) if node.op_type in ("Conv", "Gemm", "MatMul") else None
    if weight is None:
        return None
    name = f"{node.output[0]}/off"
    inputs = [node.input[0], name, *node.input[2:]]
    return [_with(node, inputs=inputs)], {name: (weight * np.float32(1.01)).astype(weight.dtype)}


def _scalar_off(graph: Graph, node: Any) -> Any:
    """Put 1 % more in place of a scalar, a bound among them."""
    for place, each in enumerate(node.input):
        value = graph.weights.get(each)
        if value is not None and value.dtype == np.float32 and value.size == 1 and float(value.flat[0]):
            inputs = list(node.input)
            inputs[place] = f"{node.output[0]}/off"
            return [_with(node, inputs=inputs)], {inputs[place]: np.asarray(value * np.float32(1.01), np.float32)}
    return None


def _another_axis(graph: Graph, node: Any) -> Any:
    shape = graph.shapes.get(node.input[0], ()) if node.input else ()
    if node.op_type not in ("Softmax", "LogSoftmax") or len(shape) < 2:
        return None
    axis = _attribute(node, "axis", -1) % len(shape)
    other = axis - 1 if axis else 1
    return ([_with(node, axis=other)], {}) if shape[other] > 1 else None


def _floor(graph: Graph, node: Any) -> Any:
    if node.op_type == "Round":
        return [_with(node, kind="Floor")], {}
    scale = graph.weights.get(node.input[1]) if node.op_type == "QuantizeLinear" else None
    if scale is None:
        return None
    shifted, name = f"{node.output[0]}/shifted", f"{node.output[0]}/half"
    before = helper.make_node("Sub", [node.input[0], name], [shifted])
    return [before, _with(node, inputs=[shifted, *node.input[1:]])], {
        name: np.asarray(np.float32(0.5) * scale.astype(np.float32))
    }


def _next_place(graph: Graph, node: Any) -> Any:
    """Take what is one place before, along every axis that is sliced."""
    shape = graph.shapes.get(node.input[0], ()) if node.input else ()
    if node.op_type != "Slice" or len(node.input) < 4 or not shape:
        return None
    starts, ends = (graph.weights.get(node.input[place]) for place in (1, 2))
    if starts is None or ends is None or min(starts.min(), ends.min()) < 1:
        return None
    names = [f"{node.output[0]}/{what}" for what in ("starts", "ends")]
    moved = [array.astype(np.int64) - 1 for array in (starts, ends)]
    return [_with(node, inputs=[node.input[0], *names, *node.input[3:]])], dict(zip(names, moved, strict=True))


def _dropped(graph: Graph, node: Any) -> Any:
    """Leave in its buffer what the inference before made."""
    if node.op_type not in LAUNCHES:
        return None
    name = f"{node.output[0]}/before"
    return [helper.make_node("Identity", [name], list(node.output))], {name: graph.before[node.output[0]]}


def _no_bias(graph: Graph, node: Any) -> Any:
    if node.op_type in ("Conv", "Gemm") and len(node.input) == 3:
        return [_with(node, inputs=node.input[:2])], {}
    if node.op_type == "Add" and node.input[1] in graph.weights and graph.weights[node.input[1]].ndim == 1:
        return [_with(node, inputs=node.input[:1], kind="Identity")], {}
    return None


def _activation(graph: Graph, node: Any) -> Any:
    others: dict[str, tuple[str, dict[str, Any]]] = {
        "Relu": ("LeakyRelu", {"alpha": 0.01}),
        "HardSigmoid": ("HardSigmoid", {"alpha": 0.2, "beta": 0.5}),
        "Sigmoid": ("HardSigmoid", {"alpha": 0.2, "beta": 0.5}),
        "Erf": ("Tanh", {}),
    }
    if node.op_type == "Clip":
        return [_with(node, inputs=node.input[:1], kind="Relu")], {}
    if node.op_type not in others:
        return None
    kind, attributes = others[node.op_type]
    return [_with(node, kind=kind, **attributes)], {}


def _stored_in_half(graph: Graph, node: Any) -> Any:
    if node.op_type not in ("Conv", "Gemm", "MatMul"):
        return None
    (out,) = node.output
    made = _with(node)
    made.output[0] = f"{out}/full"
    down = helper.make_node("Cast", [f"{out}/full"], [f"{out}/half"], to=TensorProto.FLOAT16)
    return [made, down, helper.make_node("Cast", [f"{out}/half"], [out], to=TensorProto.FLOAT)], {}


FAULTS: dict[str, Fault] = {
    "epsilon times 100": _epsilon(100.0),
    "epsilon left out": _epsilon(0.0),
    "convolution padded with its edge": _padding("edge"),
    "convolution padded by reflection": _padding("reflect"),
    "convolution's padding shifted by one": _shifted,
    "max pool padded with zeros": _padding("constant", ("MaxPool",)),
    "average pool counts its padding otherwise": _count_of_pads,
    "transposed 3x3 kernel": _transposed,
    "last lane of four in place of all": _lanes(lambda channels: channels // 4 * 4 + 3),
    "two channels swapped": _lanes(_swapped),
    "weights off by 1 %": _weight_off,
    "scalar off by 1 %": _scalar_off,
    "softmax along another axis": _another_axis,
    "rounded down in place of to the nearest": _floor,
    "slice off by one place": _next_place,
    "launch dropped": _dropped,
    "bias left out": _no_bias,
    "another activation": _activation,
    "result stored in half precision": _stored_in_half,
}


@dataclass(frozen=True)
class Trial:
    """Faults at places of a network."""

    network: str
    faults: Sequence[str]
    places: Sequence[str]
    depth: float
    """Of the first: 0 at the first operator, 1 at the last."""
    change: float
    """Of an output, relative to its scale, by the larger of both measures."""
    noise: float
    """What rounding in the precision of the tolerances does to it."""
    accuracy: Accuracy
    as_a_whole: Accuracy
    """The same with one tolerance for a whole output, which no part, no tie and no sum of the oracle has a say in."""

    @property
    def visible(self) -> bool:
        """Whether it changes an output by more than rounding, or an integer."""
        return self.change > self.noise

    @property
    def caught(self) -> bool:
        """Whether the judge calls it wrong."""
        return not self.accuracy.right

    @property
    def caught_as_a_whole(self) -> bool:
        """Whether one tolerance for a whole output finds it."""
        return not self.as_a_whole.right


@dataclass(frozen=True)
class _Judged:
    """A network with its truth, and edits of it that are faults."""

    name: str
    graph: Graph
    truth: Sequence[Array]
    measured: Sequence[Measured]
    edits: Mapping[str, Sequence[Edit]]
    precision: str

    @classmethod
    def of(cls, network: KnownNetwork, precision: str) -> _Judged:
        model = network.make()
        graph = Graph(model, network.inputs(model), other_inputs=network.inputs(model, 1))
        truth = graph.run()
        edits = {
            fault: [Edit(place, *made) for place, node in enumerate(graph.nodes) if (made := edit_of(graph, node))]
            for fault, edit_of in FAULTS.items()
        }
        return cls(network.name, graph, truth, measure_leeway(model, graph.inputs, truth), edits, precision)

    def trials(self, faults: Sequence[str], edits: Sequence[Edit]) -> Iterator[Trial]:
        """Yield the trial, unless onnxruntime lacks an operator of it in half precision."""
        with suppress(NoAnswer):
            yield self._trial(faults, edits)

    def _trial(self, faults: Sequence[str], edits: Sequence[Edit]) -> Trial:
        leeway = [each.leeway(ROUNDING_FACTOR[self.precision], self.precision) for each in self.measured]
        rounding, answer = [each.rounding for each in leeway], self.graph.run(*edits)
        limits = (RELATIVE_TOLERANCE[self.precision], rounding)
        accuracy, as_a_whole = (compare_answers(answer, self.truth, *limits, given) for given in (leeway, []))
        change = max(as_a_whole.max_rel_err, as_a_whole.rel_rms_err or 0.0)
        nodes = [self.graph.nodes[edit.place] for edit in edits]
        places = [f"{node.op_type} {node.name or node.output[0]!r}" for node in nodes]
        depth = min(edit.place for edit in edits) / len(self.graph.nodes)
        noise = max(rounding) / ROUNDING_FACTOR[self.precision]
        return Trial(self.name, faults, places, depth, change, noise, accuracy, as_a_whole)


def trials(network: KnownNetwork, depths: int, together: int, precision: str = FLOAT32) -> Iterator[Trial]:
    """Yield every fault at several depths of a network, and then several faults together."""
    judged = _Judged.of(network, precision)
    for fault, edits in judged.edits.items():
        for edit in _sample(edits, depths):
            yield from judged.trials([fault], [edit])
    chance, kinds = np.random.default_rng(0), [fault for fault, edits in judged.edits.items() if edits]
    for count in range(2, MOST_TOGETHER + 1):
        for _ in range(together if len(kinds) >= count else 0):
            faults = [kinds[place] for place in chance.choice(len(kinds), count, replace=False)]
            chosen = [judged.edits[fault][int(chance.integers(len(judged.edits[fault])))] for fault in faults]
            if len({edit.place for edit in chosen}) == count:
                yield from judged.trials(faults, chosen)


def _sample(edits: Sequence[Edit], count: int) -> Sequence[Edit]:
    if len(edits) <= count:
        return edits
    return [edits[round(place)] for place in np.linspace(0, len(edits) - 1, count)]


def _share(found: Iterable[bool]) -> str:
    listed = list(found)
    return f"{sum(listed)} of {len(listed)}"


def _row(name: str, tried: Sequence[Trial]) -> list[str]:
    visible = [trial for trial in tried if trial.visible]
    caught, as_a_whole = ([trial.caught for trial in visible], [trial.caught_as_a_whole for trial in visible])
    return [name, str(len(tried)), str(len(visible)), _share(caught), _share(as_a_whole)]


def report(tried: Sequence[Trial]) -> Iterator[str]:
    """Yield the tables."""
    alone = [trial for trial in tried if len(trial.faults) == 1]
    for what, shown, key in (
        ("fault", alone, lambda trial: trial.faults[0]),
        ("network", alone, lambda trial: trial.network),
        ("depth", alone, lambda trial: ("first third", "middle third", "last third")[min(2, int(trial.depth * 3))]),
        ("faults together", tried, lambda trial: str(len(trial.faults))),
    ):
        names = dict.fromkeys(key(trial) for trial in shown)
        rows = [_row(name, [trial for trial in shown if key(trial) == name]) for name in names]
        heads = [what, "tried", "beyond rounding", "caught", "caught by one tolerance for a whole output"]
        yield _markdown(heads, [*rows, _row("all", shown)])
    missed = [trial for trial in tried if trial.visible and not trial.caught]
    yield f"Beyond rounding and not caught: {len(missed)}"
    yield "\n".join(
        f"* {trial.network}, {' and '.join(trial.faults)} at {', '.join(trial.places)}: {trial.change:.1e}, rounding "
        f"{trial.noise:.1e}"
        for trial in missed
    )
    alarms = [trial for trial in tried if trial.caught and not trial.visible]
    yield f"Within the rounding of the whole output and caught, by a part of it: {len(alarms)}"
    yield "\n".join(
        f"* {trial.network}, {trial.faults} at {trial.places}: {trial.accuracy.complaint}" for trial in alarms
    )
    lost = [trial for trial in tried if trial.caught_as_a_whole and not trial.caught]
    yield f"Found by one tolerance for a whole output, and not by the judge: {len(lost)}"
    yield "\n".join(
        f"* {trial.network}, {trial.faults} at {trial.places}: {trial.as_a_whole.complaint}" for trial in lost
    )


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("networks", nargs="*", default=["zoo"])
    parser.add_argument("--depths", type=int, default=8, help="places of a network at which each fault is tried")
    parser.add_argument("--together", type=int, default=8, help="trials of two to five faults each")
    parser.add_argument(
        "--precision", default=FLOAT32, choices=list(RELATIVE_TOLERANCE), help="tolerances of such cases"
    )
    chosen = parser.parse_args()
    tried: list[Trial] = []
    for network in known_networks(chosen.networks):
        try:
            tried += trials(network, chosen.depths, chosen.together, chosen.precision)
            print(f"{network.name}: {len(tried)} trials so far", file=sys.stderr, flush=True)
        except (NoAnswer, Refusal) as reason:
            print(f"{network.name}: left out, {reason}", file=sys.stderr, flush=True)
    print("\n\n".join(report(tried)))


if __name__ == "__main__":
    main()
