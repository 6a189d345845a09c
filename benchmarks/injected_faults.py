"""Which wrong operators the judge catches: one at a time is put into a network, at several depths of it.

    python -m benchmarks.injected_faults [NETWORK...] [--depths 8]

Each fault is one that a compiler makes: a wrong epsilon, padding of another kind, a transposed 3x3 kernel, one lane of
four in place of all. onnxruntime runs the network with it and without, and the product's own judge compares the two
with the tolerances of a float32 case. TVM is not needed. Prints tables in Markdown, and every fault that changes an
output by more than rounding does and is still not caught, by name. A network with more places for a fault than
`--depths` is sampled evenly, from the first place to the last.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.known_networks import KnownNetwork, known_networks
from harness.base.case import Precision
from harness.base.suite import RELATIVE_TOLERANCE, ROUNDING_FACTOR
from harness.compile.oracle.leeway_measurement import measure_leeway
from harness.compile.oracle.onnx_runtime import OnnxRuntime
from harness.measure.correctness import compare_answers
from harness.measure.facts import Accuracy

if TYPE_CHECKING:
    from device_runner.device import Array

FLOAT32 = Precision.FLOAT32.value
BEFORE = 1e-3
"""The tolerance of float32 before rounding was measured, of the peak alone."""


@dataclass
class Graph:
    """A network whose weights are given to it like inputs, so that another weight or operator costs no new file."""

    model: onnx.ModelProto
    inputs: Mapping[str, Array]
    weights: dict[str, Array] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

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

    def run(self, edit: Edit | None = None) -> list[Array]:
        """Return the answer, with one operator replaced."""
        nodes, weights = self.nodes, dict(self.weights)
        if edit:
            nodes[edit.place : edit.place + 1] = edit.nodes
            weights |= edit.weights
        used = {name for node in nodes for name in node.input}
        fed = {name: array for name, array in weights.items() if name in used}
        kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in fed.items()}
        values = [helper.make_tensor_value_info(name, kinds[name], fed[name].shape) for name in fed]
        ends = self.model.graph.output
        graph = helper.make_graph(nodes, "faulty", [*self.model.graph.input, *values], ends)
        model = helper.make_model(graph, opset_imports=self.model.opset_import, ir_version=8)
        return OnnxRuntime(model).ask({**self.inputs, **fed})


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
        if small is not None and small.size == 1 and 0 < float(small) <= 1e-4:
            other = np.full(small.shape, factor * float(small), np.float32)
            return [_with(node, inputs=[node.input[0], "epsilon"])], {"epsilon": other}
        return None

    return fault


def _pads(node: Any) -> list[int] | None:
    pads = _attribute(node, "pads")
    return list(pads) if pads and any(pads) and len(pads) == 4 else None


def _padding(mode: str, kinds: Sequence[str] = ("Conv",)) -> Fault:
    def fault(graph: Graph, node: Any) -> Any:
        if node.op_type not in kinds or not (pads := _pads(node)):
            return None
        shape = graph.shapes.get(node.input[0], (0, 0, 9, 9))
        if mode == "reflect" and max(pads) >= min(shape[2:]):
            return None
        before = helper.make_node("Pad", [node.input[0], "widths"], ["padded"], mode=mode)
        widths = np.array([0, 0, *pads[:2], 0, 0, *pads[2:]])
        return [before, _with(node, inputs=["padded", *node.input[1:]], pads=[0] * 4)], {"widths": widths}

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


def _one_lane(graph: Graph, node: Any) -> Any:
    weight = graph.weights.get(node.input[1]) if node.op_type == "Conv" else None
    if weight is None or weight.shape[0] % 4:
        return None
    lanes = np.arange(weight.shape[0]) // 4 * 4 + 3
    (out,) = node.output
    last = helper.make_node("Gather", [f"{out}/all", "lanes"], [out], axis=1)
    made = _with(node)
    made.output[0] = f"{out}/all"
    return [made, last], {"lanes": lanes}


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
    "last lane of four in place of all": _one_lane,
    "bias left out": _no_bias,
    "another activation": _activation,
    "result stored in half precision": _stored_in_half,
}


@dataclass(frozen=True)
class Trial:
    """One fault at one place of a network."""

    network: str
    fault: str
    node: str
    depth: float
    """0 at the first operator, 1 at the last."""
    change: float
    """Of an output, relative to its scale, by the larger of both measures."""
    noise: float
    """What rounding does to it."""
    accuracy: Accuracy

    @property
    def visible(self) -> bool:
        """Whether it changes an output by more than rounding."""
        return self.change > self.noise

    @property
    def caught(self) -> bool:
        """Whether the judge calls it wrong."""
        return not self.accuracy.right

    @property
    def caught_before(self) -> bool:
        """The same by the tolerance of the peak alone."""
        return self.accuracy.max_rel_err > BEFORE or self.accuracy.cosine < 0.99


def trials(network: KnownNetwork, depths: int) -> Iterator[Trial]:
    """Yield every fault at several depths of a network."""
    model = network.make()
    graph = Graph(model, network.inputs(model))
    truth = graph.run()
    measured = measure_leeway(model, graph.inputs, truth)
    factor, noise = ROUNDING_FACTOR[FLOAT32], [one.rounding for one in measured]
    leeway = [one.leeway(factor, FLOAT32, computes_half=False) for one in measured]
    rounding = [factor * each for each in noise]
    for fault, edit_of in FAULTS.items():
        edits = [Edit(place, *made) for place, node in enumerate(graph.nodes) if (made := edit_of(graph, node))]
        for edit in _sample(edits, depths):
            accuracy = compare_answers(graph.run(edit), truth, RELATIVE_TOLERANCE[FLOAT32], rounding, leeway)
            change = max(accuracy.max_rel_err, accuracy.rel_rms_err or 0.0)
            node = graph.nodes[edit.place]
            name = f"{node.op_type} {node.name or node.output[0]!r}"
            yield Trial(network.name, fault, name, edit.place / len(graph.nodes), change, max(noise), accuracy)


def _sample(edits: Sequence[Edit], count: int) -> Sequence[Edit]:
    if len(edits) <= count:
        return edits
    return [edits[round(place)] for place in np.linspace(0, len(edits) - 1, count)]


def _share(found: Iterable[bool]) -> str:
    listed = list(found)
    return f"{sum(listed)} of {len(listed)}"


def _row(name: str, tried: Sequence[Trial]) -> list[str]:
    visible = [trial for trial in tried if trial.visible]
    return [
        name,
        str(len(tried)),
        str(len(visible)),
        _share(trial.caught for trial in visible),
        _share(trial.caught_before for trial in visible),
    ]


def report(tried: Sequence[Trial]) -> Iterator[str]:
    """Yield the tables."""
    for what, key in (
        ("fault", lambda trial: trial.fault),
        ("network", lambda trial: trial.network),
        ("depth", lambda trial: ("first third", "middle third", "last third")[min(2, int(trial.depth * 3))]),
    ):
        names = dict.fromkeys(key(trial) for trial in tried)
        rows = [_row(name, [trial for trial in tried if key(trial) == name]) for name in names]
        heads = [what, "tried", "beyond rounding", "caught", f"caught by {BEFORE:g} of the peak"]
        yield _markdown(heads, [*rows, _row("all", tried)])
    missed = [trial for trial in tried if trial.visible and not trial.caught]
    yield f"Beyond rounding and not caught: {len(missed)}"
    yield "\n".join(
        f"* {trial.network}, {trial.fault} at {trial.node}: {trial.change:.1e}, rounding {trial.noise:.1e}"
        for trial in missed
    )


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("networks", nargs="*", default=["zoo"])
    parser.add_argument("--depths", type=int, default=8, help="places of a network at which each fault is tried")
    chosen = parser.parse_args()
    tried: list[Trial] = []
    for network in known_networks(chosen.networks):
        tried += trials(network, chosen.depths)
        print(f"{network.name}: {len(tried)} trials so far", file=sys.stderr, flush=True)
    print("\n\n".join(report(tried)))


if __name__ == "__main__":
    main()
