"""One step of a recurrent layer in plain operators, as ONNX defines LSTM, GRU and RNN.

Source: https://onnx.ai/onnx/operators/onnx__LSTM.html, onnx__GRU.html, onnx__RNN.html.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.compile.models.preparation.editing import NodeWriter

Activation = Callable[[str], str]
"""Writes an operator on a tensor; returns its result."""

PARAMETERS: dict[str, dict[str, float]] = {
    "Relu": {}, "Tanh": {}, "Sigmoid": {}, "Softsign": {}, "Softplus": {},
    "LeakyRelu": {"alpha": 0.01}, "ThresholdedRelu": {"alpha": 1.0}, "Elu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "Affine": {"alpha": 1.0, "beta": 0.0}, "ScaledTanh": {"alpha": 1.0, "beta": 1.0},
}  # fmt: skip
"""Every activation by its name, with the defaults of its numbers."""


@dataclass(frozen=True)
class WeightNames:
    """Names of one direction's weights; a name is empty where there is no such weight."""

    recurrent: str
    """[hidden, gates * hidden]"""
    recurrent_bias: str
    """[gates * hidden]"""
    hidden_gate: tuple[str, str] = ("", "")
    """Weight and bias of a GRU's hidden gate, where those above are of its other gates alone."""
    peepholes: tuple[str, ...] = ()
    """Of the input, output and forget gate of an LSTM: [hidden] each."""


@dataclass(frozen=True)
class RecurrentCell:
    """What one step of one direction computes."""

    writer: NodeWriter
    hidden: int
    """Extent of the state."""
    activations: Sequence[Activation]
    clip: Activation
    """What is applied to the input of an activation."""
    multiply: Callable[[str, str], str]
    """Writes the product of a state with a weight."""

    gates: int = 1

    def step(self, inputs: str, states: tuple[str, ...], weights: WeightNames) -> tuple[str, ...]:
        """Return the next states, the first of which is the output; `inputs` are [batch, gates * hidden]."""
        total = self._sum(inputs, self.multiply(states[0], weights.recurrent), weights.recurrent_bias)
        return (self._activate(0, total),)

    def _gate(self, total: str, place: int, count: int = 1) -> str:
        return self.writer.slice(total, place * self.hidden, (place + count) * self.hidden, 1)

    def _activate(self, place: int, value: str) -> str:
        return self.activations[place](self.clip(value))

    def _sum(self, *terms: str) -> str:
        first, *rest = [term for term in terms if term]
        for term in rest:
            first = self.writer.add("Add", first, term)
        return first

    def _product(self, left: str, right: str) -> str:
        return self.writer.add("Mul", left, right)


@dataclass(frozen=True)
class LstmCell(RecurrentCell):
    """Gates in ONNX's order: input, output, forget, cell."""

    gates: int = 4
    coupled: bool = False
    """Whether the forget gate is one less the input gate (`input_forget`)."""
    one: str = ""

    def step(self, inputs: str, states: tuple[str, ...], weights: WeightNames) -> tuple[str, ...]:
        """Return the next hidden and cell state."""
        hidden, cell = states
        total = self._sum(inputs, self.multiply(hidden, weights.recurrent), weights.recurrent_bias)
        input_hole, output_hole, forget_hole = weights.peepholes or ("", "", "")
        input_gate = self._activate(0, self._peep(self._gate(total, 0), cell, input_hole))
        if self.coupled:
            forget_gate = self.writer.add("Sub", self.one, input_gate)
        else:
            forget_gate = self._activate(0, self._peep(self._gate(total, 2), cell, forget_hole))
        candidate = self._activate(1, self._gate(total, 3))
        cell = self._sum(self._product(forget_gate, cell), self._product(input_gate, candidate))
        output_gate = self._activate(0, self._peep(self._gate(total, 1), cell, output_hole))
        return self._product(output_gate, self.activations[2](cell)), cell

    def _peep(self, gate: str, cell: str, weight: str) -> str:
        return self._sum(gate, self._product(weight, cell)) if weight else gate


@dataclass(frozen=True)
class GruCell(RecurrentCell):
    """Gates in ONNX's order: update, reset, hidden."""

    gates: int = 3
    reset_after: bool = False
    """Whether the reset gate is applied to the product with the state (`linear_before_reset`)."""

    def step(self, inputs: str, states: tuple[str, ...], weights: WeightNames) -> tuple[str, ...]:
        """Return the next hidden state."""
        (state,) = states
        if self.reset_after:
            product = self._product_with(state, weights.recurrent, weights.recurrent_bias)
            update, reset = self._both(inputs, self._gate(product, 0, 2))
            inner = self._product(reset, self._gate(product, 2))
        else:
            update, reset = self._both(inputs, self._product_with(state, weights.recurrent, weights.recurrent_bias))
            inner = self._product_with(self._product(reset, state), *weights.hidden_gate)
        candidate = self._activate(1, self._sum(self._gate(inputs, 2), inner))
        return (self._sum(candidate, self._product(update, self.writer.add("Sub", state, candidate))),)

    def _both(self, inputs: str, product: str) -> tuple[str, str]:
        gates = self._activate(0, self._sum(self._gate(inputs, 0, 2), product))
        return self._gate(gates, 0), self._gate(gates, 1)

    def _product_with(self, state: str, weight: str, bias: str) -> str:
        return self._sum(self.multiply(state, weight), bias)


def activation(writer: NodeWriter, name: str, alpha: float | None, beta: float | None, dtype: str) -> Activation:
    """Return what writes an activation; its name is one of `PARAMETERS`."""
    given = dict(zip(("alpha", "beta"), (alpha, beta), strict=True))
    numbers: dict[str, Any] = dict(PARAMETERS[name])
    numbers |= {key: number for key, number in given.items() if key in numbers and number is not None}
    if name not in ("Affine", "ScaledTanh"):
        return lambda value: writer.add(name, value, **numbers)
    factor, other = (writer.constant(np.array(numbers[key], dtype)) for key in ("alpha", "beta"))
    if name == "Affine":
        return lambda value: writer.add("Add", writer.add("Mul", value, factor), other)
    return lambda value: writer.add("Mul", writer.add("Tanh", writer.add("Mul", value, other)), factor)
