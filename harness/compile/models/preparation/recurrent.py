"""LSTM, GRU and RNN step by step, where the length of the sequence is known: TVM's importer has none of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from onnx import helper

from harness.base.failures import ModelError
from harness.base.tables import counted
from harness.compile.models.outline import (
    RECURRENT,
    NetworkView,
    attribute_of,
    is_onnx,
    kind_of,
    node_name,
    operand,
    opset_of,
)
from harness.compile.models.preparation.cells import (
    PARAMETERS,
    Activation,
    GruCell,
    LstmCell,
    RecurrentCell,
    WeightNames,
    activation,
)
from harness.compile.models.preparation.constants import fold
from harness.compile.models.preparation.editing import INTEGERS, NodeWriter, rewrite

QUANTISED = "com.microsoft.DynamicQuantizeLSTM"
"""An LSTM that onnxruntime quantises: its products are of 8 bits, those of its states anew in every step."""
KINDS = dict(zip(RECURRENT, (("Sigmoid", "Tanh", "Tanh"), ("Sigmoid", "Tanh"), ("Tanh",)), strict=True))
"""Recurrent layers, with the activations of one direction."""
MOST_OPERATORS = 10_000
"""Operators that all layers of a network may become. TVM 0.27 takes 34 s of a processor for 200 steps of an LSTM, which
are 3,200 operators, and five times as long for three times as many."""
_GATES = {"LSTM": LstmCell.gates, "GRU": GruCell.gates, "RNN": RecurrentCell.gates}
STEP_OPERATORS = {"LSTM": 17, "GRU": 15, "RNN": 5, "DynamicQuantizeLSTM": 20}
"""About as many operators are written for one step."""


def unroll(model: Any) -> str:
    """Write recurrent layers step by step. Raises `ModelError` for one that would be too long."""
    layers, steps = Counter[str](), Counter[str]()
    while replaced := _unroll_once(model, steps):  # what comes of one may tell the length of the next
        layers += replaced
        fold(model)
    return "; ".join(f"unrolled {layers[kind]} {kind} into {counted(steps[kind], 'step')}" for kind in sorted(layers))


def _unroll_once(model: Any, steps: Counter[str]) -> Counter[str]:
    """Return how many layers of each kind were unrolled, and count their steps."""
    if not any(map(_layer_type, model.graph.node)):
        return Counter()
    _require_few(model, steps)

    def unroll_layer(node: Any, view: NetworkView, write: NodeWriter) -> bool:
        kind = _layer_type(node)
        if not kind or not (layer := kind.of(node, view, write)):
            return False
        layer.write()
        steps[node.op_type] += layer.length * layer.directions
        return True

    return Counter(node.op_type for node in rewrite(model, "unrolled", unroll_layer))


def _layer_type(node: Any) -> type[_Layer] | None:
    if is_onnx(node, *KINDS):
        return _Layer
    return _QuantisedLayer if kind_of(node) == QUANTISED else None


def _require_few(model: Any, steps: Counter[str]) -> None:
    view = NetworkView(model)
    total = sum(count * STEP_OPERATORS[kind] for kind, count in steps.items())
    for node in filter(_layer_type, model.graph.node):
        shape = view.shape(node.input[0])
        if shape is None or len(shape) != 3:
            continue
        length = shape[1 if attribute_of(node, "layout", 0) else 0]
        both = 2 if attribute_of(node, "direction", "forward") == "bidirectional" else 1
        total += length * both * STEP_OPERATORS[node.op_type]
        if total > MOST_OPERATORS:
            raise ModelError(
                f"{node.op_type} {node_name(node)!r} over {length} steps would become too long: recurrent layers are "
                f"unrolled into {MOST_OPERATORS} operators at most, and this network would take more",
                hint="give a shorter sequence with --shape, or export the network for one step",
            )


class _Layer:
    """One recurrent layer, which is written step by step."""

    def __init__(self, node: Any, shape: tuple[int, ...], dtype: str, lengths: Any, writer: NodeWriter) -> None:
        self.node, self.dtype, self.writer = node, dtype, writer
        self.swapped = bool(attribute_of(node, "layout", 0))
        self.length, self.batch = (shape[1], shape[0]) if self.swapped else shape[:2]
        self.features, self.lengths = shape[2], lengths
        """Lengths of the sequences, or the name of what holds them; None if all are whole."""
        self.hidden, self.opset = attribute_of(node, "hidden_size", 0), 0
        self.direction = attribute_of(node, "direction", "forward")
        self.kind = node.op_type.removeprefix("DynamicQuantize")

    @property
    def directions(self) -> int:
        """How many it has."""
        return 2 if self.direction == "bidirectional" else 1

    @classmethod
    def of(cls, node: Any, view: NetworkView, writer: NodeWriter) -> _Layer | None:
        """Return a layer; None if its length is not known, or it does what cannot be written. Raises `ModelError`."""
        shape, recurrent, kind = view.shape(node.input[0]), view.shape(node.input[2]), view.kind(node.input[0])
        lengths: Any = view.constant(node, 4)
        lengths = operand(node, 4) or None if lengths is None else lengths
        names = attribute_of(node, "activations", [b"Tanh"])
        known = all(name.decode() in PARAMETERS for name in names)
        if shape is None or len(shape) != 3 or not shape[0] * shape[1] or not recurrent or kind is None:
            return None
        if not known:
            return None
        layer = cls(node, shape, str(helper.tensor_dtype_to_np_dtype(kind.elem_type)), lengths, writer)
        layer.hidden, layer.opset = layer.hidden or recurrent[-1], opset_of(view.model)
        if is_onnx(node, *KINDS):
            layer._require_fitting(view)
        return layer

    def _require_fitting(self, view: NetworkView) -> None:
        """Raise `ModelError` for an operand of another shape: onnxruntime 1.24 dies of some of an LSTM (SIGSEGV)."""
        node, count, width = self.node, self.directions, _GATES[self.kind] * self.hidden
        state = (self.batch, count, self.hidden) if self.swapped else (count, self.batch, self.hidden)
        needed = {
            "W": (count, width, self.features),
            "R": (count, width, self.hidden),
            "B": (count, 2 * width),
            "sequence_lens": (self.batch,),
            "initial_h": state,
            "initial_c": state,
            "P": (count, 3 * self.hidden),
        }
        for name, (letter, shape) in zip(node.input[1:], needed.items(), strict=False):
            given = view.shape(name)
            if given not in (None, shape):
                raise ModelError(
                    f"{node.op_type} {node_name(node)!r} is given {letter} of the shape {[*given]}, and needs "
                    f"{[*shape]} for batches of {self.batch} with {self.features} numbers in each step",
                    hint="give the shape that the network is made for with --shape",
                )

    def write(self) -> None:
        """Write the whole layer, with the results of the node that it was."""
        write, node = self.writer, self.node
        data = write.add("Transpose", node.input[0], perm=[1, 0, 2]) if self.swapped else node.input[0]
        rows = write.add("Reshape", data, write.integers(self.length * self.batch, self.features))
        count = self.directions
        results = [self._direction(place, rows) for place in range(count)]
        outputs = [*node.output, "", "", ""]
        if outputs[0]:
            every = [output for step in range(self.length) for output in (result[0][step] for result in results)]
            self._join(every, (self.length, count, self.batch, self.hidden), (2, 0, 1, 3), outputs[0])
        for place, output in enumerate(outputs[1:3]):
            if output:
                last = [result[1][place] for result in results]
                self._join(last, (count, self.batch, self.hidden), (1, 0, 2), output)

    def _join(self, parts: Sequence[str], shape: tuple[int, ...], swapped: tuple[int, ...], output: str) -> None:
        write = self.writer
        whole = write.add("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]
        if not self.swapped:
            write.add("Reshape", whole, write.integers(*shape), output=output)
            return
        write.add("Transpose", write.add("Reshape", whole, write.integers(*shape)), perm=list(swapped), output=output)

    def _direction(self, place: int, rows: str) -> tuple[list[str], tuple[str, ...]]:
        """Return the output of every step, [batch, hidden], and the last states."""
        write, cell = self.writer, self._cell(place)
        width = cell.gates * self.hidden
        input_bias, recurrent_bias = self._biases(place, width)
        products = self._multiply(rows, self._weight(1, place, width), 1, place)
        products = write.add("Add", products, input_bias) if input_bias else products
        weights = self._weights(place, self._weight(2, place, width), recurrent_bias)
        states = self._initial_states(place)
        backwards = self.direction == "reverse" or place == 1
        outputs = [""] * self.length
        for step in sorted(range(self.length), reverse=backwards):
            ends = (step * self.batch, (step + 1) * self.batch)
            inputs = self.writer.slice(products, *ends) if self.length > 1 else products
            outputs[step], states = self._masked(step, states, cell.step(inputs, states, weights))
        return outputs, states

    def _weight(self, place: int, direction: int, width: int) -> str:
        """One direction's weight, as what a product takes: [features, gates * hidden]."""
        return self.writer.add("Transpose", self._own(place, direction, (width, -1)), perm=[1, 0])

    def _multiply(self, rows: str, weight: str, place: int, direction: int) -> str:
        """Write a product with the weight of an input's place."""
        return self.writer.add("MatMul", rows, weight)

    def _weights(self, place: int, recurrent: str, bias: str) -> WeightNames:
        if self.kind != "GRU" or attribute_of(self.node, "linear_before_reset", 0):
            return WeightNames(recurrent, bias, peepholes=self._peepholes(place))
        middle, end = 2 * self.hidden, 3 * self.hidden
        own, of_hidden = self.writer.slice(recurrent, 0, middle, 1), self.writer.slice(recurrent, middle, end, 1)
        if not bias:
            return WeightNames(own, "", (of_hidden, ""))
        return WeightNames(own, self.writer.slice(bias, 0, middle), (of_hidden, self.writer.slice(bias, middle, end)))

    def _masked(self, step: int, before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Return the step's output and states, where sequences that ended keep their state and give zeros."""
        write = self.writer
        if isinstance(self.lengths, str):
            alive = write.add("Less", write.constant(np.array([step], np.int32)), self.lengths)
            flags = write.add("Reshape", alive, write.integers(self.batch, 1))
        elif self.lengths is None or (step < self.lengths).all():
            return after[0], after
        else:
            flags = write.constant((step < self.lengths).reshape(-1, 1))
        zero = write.constant(np.zeros((1, 1), self.dtype))
        states = tuple(write.add("Where", flags, new, old) for new, old in zip(after, before, strict=True))
        return write.add("Where", flags, after[0], zero), states

    def _own(self, place: int, direction: int, shape: tuple[int, ...]) -> str:
        """One direction's part of a weight; empty if there is none."""
        if not operand(self.node, place):
            return ""
        part = self.writer.slice(operand(self.node, place), direction, direction + 1)
        return self.writer.add("Reshape", part, self.writer.integers(*shape))

    def _biases(self, place: int, width: int) -> tuple[str, str]:
        """Return what is added to the products of the inputs, and to those of the state."""
        whole = self._own(3, place, (-1,))
        if not whole:
            return "", ""
        first, second = self.writer.slice(whole, 0, width), self.writer.slice(whole, width, 2 * width)
        if self.kind == "GRU":
            return first, second
        return self.writer.add("Add", first, second), ""

    def _peepholes(self, place: int) -> tuple[str, ...]:
        whole, size = self._own(7, place, (-1,)) if self.kind == "LSTM" else "", self.hidden
        return tuple(self.writer.slice(whole, size * i, size * (i + 1)) for i in range(3)) if whole else ()

    def _initial_states(self, place: int) -> tuple[str, ...]:
        """Hidden and, of an LSTM, cell state before the first step: [batch, hidden]."""
        names = [operand(self.node, i) for i in ((5, 6) if self.kind == "LSTM" else (5,))]
        write, axis = self.writer, 1 if self.swapped else 0
        return tuple(
            write.add("Reshape", write.slice(name, place, place + 1, axis), write.integers(self.batch, self.hidden))
            if name
            else write.constant(np.zeros((self.batch, self.hidden), self.dtype))
            for name in names
        )

    def _cell(self, place: int) -> RecurrentCell:
        activations, clip = self._activations(place), self._clip()
        parts = (self.writer, self.hidden, activations, clip, partial(self._multiply, place=2, direction=place))
        if self.kind == "LSTM":
            coupled = bool(attribute_of(self.node, "input_forget", 0))
            one = self.writer.constant(np.ones((), self.dtype)) if coupled else ""
            return LstmCell(*parts, coupled=coupled, one=one)
        if self.kind == "GRU":
            return GruCell(*parts, reset_after=bool(attribute_of(self.node, "linear_before_reset", 0)))
        return RecurrentCell(*parts)

    def _activations(self, place: int) -> list[Activation]:
        """Activations of one direction. Numbers are listed only for those that take some, in their order."""
        usual = KINDS[self.kind]
        names = [name.decode() for name in attribute_of(self.node, "activations", [])] or [*usual, *usual]
        numbers = {key: iter(attribute_of(self.node, f"activation_{key}", [])) for key in ("alpha", "beta")}
        made = []
        for name in names:
            alpha, beta = (next(numbers[key], None) if key in PARAMETERS[name] else None for key in ("alpha", "beta"))
            made.append(activation(self.writer, name, alpha, beta, self.dtype))
        return made[place * len(usual) : (place + 1) * len(usual)]

    def _clip(self) -> Activation:
        limit, write = attribute_of(self.node, "clip", 0.0), self.writer
        if not limit:
            return lambda value: value
        if self.opset < 11:
            return lambda value: write.add("Clip", value, min=-limit, max=limit)
        low, high = (write.constant(np.array(end, self.dtype)) for end in (-limit, limit))
        return lambda value: write.add("Clip", value, low, high)


class _QuantisedLayer(_Layer):
    """An LSTM of onnxruntime's optimiser, which multiplies integers of 8 bits: here in float32.

    Sums beyond 2^24 are rounded, as they are in onnxruntime when it makes floats of them. Source:
    onnxruntime/contrib_ops/cpu/quantization/dynamic_quantize_lstm.cc. The weights are transposed.
    """

    view: NetworkView
    zeros: set[str]
    """States that are zeros, whose scale would be 0 as well."""

    @classmethod
    def of(cls, node: Any, view: NetworkView, writer: NodeWriter) -> _Layer | None:
        """Return a layer; None if its length or a weight is not known, or if onnxruntime may quantise by rows."""
        layer = super().of(node, view, writer)
        if not isinstance(layer, _QuantisedLayer) or layer.batch != 1:
            return None
        if any(view.constant(node, place) is None for place in (1, 2, 8, 9, 10, 11)):
            return None
        layer.view, layer.zeros = view, set()
        return layer

    def _initial_states(self, place: int) -> tuple[str, ...]:
        states, given = super()._initial_states(place), self.view.constant(self.node, 5)
        if not operand(self.node, 5) or (given is not None and not given.any()):
            self.zeros.add(states[0])
        return states

    def _weight(self, place: int, direction: int, width: int) -> str:
        weight, zero = self._numbers(place, direction), self._numbers(7 + 2 * place, direction)
        return self.writer.constant((weight.astype(np.int32) - zero.astype(np.int32)).astype(np.float32))

    def _multiply(self, rows: str, weight: str, place: int, direction: int) -> str:
        if rows in self.zeros:
            return self.writer.constant(np.zeros((1, 4 * self.hidden), np.float32))
        write, names = self.writer, [self.writer.name() for _ in range(3)]
        write.nodes.append(helper.make_node("DynamicQuantizeLinear", [rows], names, names[0]))
        integers, scale, zero = names
        values = write.add("DequantizeLinear", integers, write.constant(np.ones((), np.float32)), zero)
        scales = write.add("Mul", scale, write.constant(self._numbers(6 + 2 * place, direction)))
        return write.add("Mul", write.add("MatMul", values, weight, output=write.name(INTEGERS)), scales)

    def _numbers(self, place: int, direction: int) -> Any:
        """One direction's part of a constant input."""
        whole: Any = self.view.constant(self.node, place)
        return whole[direction]
