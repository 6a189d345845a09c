"""Measures how far another right answer may be from the judge's (`harness.compile.oracle.leeway`).

Rounding moves numbers (`rounding`), the judge's own sums round (`sums`), and a decision between two numbers that are
almost equal may fall otherwise (`decisions`). All of it is measured once, beside the judge's answer.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from onnx import helper

from device_runner.device import Array
from harness.base.case import RELATIVE_TOLERANCE, ROUNDING_FACTOR
from harness.compile.models.number_formats import in_single
from harness.compile.models.onnx_inputs import fix_shapes, input_specs
from harness.compile.models.outline import Types, copy_of, inlined, is_onnx, kind_of, opset_of, tensor_types
from harness.compile.models.preparation import prepare
from harness.compile.models.preparation.definitions import lower_definitions
from harness.compile.models.preparation.fused import write_fused
from harness.compile.models.preparation.integers import write_integers_as_floats
from harness.compile.models.preparation.quantised import write_quantised_as_floats
from harness.compile.models.preparation.recurrent import QUANTISED
from harness.compile.oracle import decisions, operands
from harness.compile.oracle.exact import exact_tensors
from harness.compile.oracle.judge import Values
from harness.compile.oracle.leeway import HALVES, PRECISIONS, SINGLE, Measured, peak_and_rms
from harness.compile.oracle.onnx_runtime import OnnxRuntime
from harness.compile.oracle.rounding import (
    AMOUNT,
    DRAWS,
    coordinate_rounding,
    farthest,
    in_half,
    move_numbers,
    relative_movement,
)
from harness.compile.oracle.sums import TERMS, with_serial_sums, with_wide_sums
from harness.compile.oracle.truth import with_outputs

_T = TypeVar("_T")
_NEWEST_OPSET = 21
"""Newest operator set of which onnxruntime (1.24) has `RandomUniformLike`, which moves numbers."""
_BOUNDED = ("Tanh", "Sigmoid", "Softmax", "Erf")
"""Functions that stay at a bound, which another program may miss by a rounding: onnxruntime 1.24 has tanh 1.0000001."""
_DIVIDING = ("QuantizeLinear", "DynamicQuantizeLinear")
DIVISION = {SINGLE: 2.5 * 2.0**-23, HALVES: 2.0**-10}
"""Relative error of a quotient by a scale that has the precision: 2.5 units in the last place (OpenCL C 3.0, 7.4)."""


def measure_leeway(model: Any, inputs: Values, outputs: Sequence[Array]) -> list[Measured]:
    """Return how far each output may be off. What cannot be computed is not known, which is no error."""
    return _JudgedNetwork.of(model, inputs, outputs).measure()


@dataclass(frozen=True)
class _JudgedNetwork:
    """A network with its judge's answer."""

    model: Any
    types: Types
    inputs: Values
    outputs: Sequence[Array]
    compared: Values
    """What its decisions compare."""
    fixed: Any
    """The network with all decisions as the judge takes them."""

    @classmethod
    def of(cls, model: Any, inputs: Values, outputs: Sequence[Array]) -> _JudgedNetwork:
        """Run it once, if there is a decision to be seen."""
        whole = _or(lambda: inlined(model), model)
        network, outputs = _or(lambda: _in_older_operators(whole, inputs, outputs), (whole, outputs))
        model = _or(lambda: _with_decisions(network, inputs), network)
        inputs = {value.name: inputs[value.name] for value in model.graph.input if value.name in inputs}
        types: Types = _or(lambda: tensor_types(model), dict[str, Any]())
        decided: Values = _or(lambda: _decided_values(network, model, inputs), dict[str, Any]())
        fixed = decisions.hold(model, decided) if decided else model
        names, constants = decisions.compared_names(model), {**inputs, **decided}
        compared: Values = _or(lambda: _values(fixed, names, constants, inputs), dict[str, Any]())
        return cls(model, types, inputs, outputs, compared, fixed)

    def measure(self) -> list[Measured]:
        """Return what is known of each output."""
        places = _or(lambda: coordinate_rounding(self.model, self.types), 0.0)
        least = {precision: AMOUNT[precision] * places for precision in PRECISIONS}
        names = [value.name for value in self.model.graph.output]
        outputs = dict(zip(names, self.outputs, strict=True))
        moved = {kind: _or(partial(self._moved, outputs, {"": AMOUNT[kind]}), list[Any]()) for kind in PRECISIONS}
        own = _or(self._own, None)
        decided = {kind: _or(partial(self._decided, kind), None) for kind in PRECISIONS}
        return [
            Measured(
                rounding={
                    name: float(np.maximum(least[name], relative_movement(arrays[index], output) if arrays else 0.0))
                    for name, arrays in moved.items()
                },
                floor=least,
                moved={name: arrays[index] for name, arrays in moved.items() if arrays and output.dtype.kind == "f"},
                own=own[index] if own and output.dtype.kind == "f" else None,
                decided={name: arrays[index][0] for name, arrays in decided.items() if arrays},
                spread={name: arrays[index][1] for name, arrays in decided.items() if arrays},
                choices=decisions.chooses(self.model, names[index]),
            )
            for index, output in enumerate(self.outputs)
        ]

    def _moved(self, values: Values, amounts: Mapping[str, float]) -> list[Array]:
        """Return how far these tensors move if numbers move by these amounts, and every decision is the judge's.

        Numbers in half precision are in single precision for that.
        """
        model, types, inputs = self.fixed, self.types, self.inputs
        names, tensors = list(values), list(values.values())
        if in_half(types):
            single: Values = {n: a.astype("float32") if a.dtype == "float16" else a for n, a in inputs.items()}
            model, inputs = in_single(model), single
            types, tensors = tensor_types(model), OnnxRuntime(with_outputs(model, names)).ask(inputs)
        exact = exact_tensors(model, types, inputs)
        draws = (move_numbers(model, types, draw, exact, amounts) for draw in range(DRAWS))
        answers = (OnnxRuntime(with_outputs(moved, names)).ask(inputs) for moved in draws)
        return farthest(tensors, answers)

    def _amounts(self) -> dict[str, float]:
        """Return how far numbers move in half precision before decisions: farther where many are added.

        A sum of n terms, added one by one, is off by √(n/6) halves of a unit (Higham and Mary, SIAM J. Sci. Comput. 41,
        2019). Its operands move by that, which shows where terms cancel, and its result, for where they do not.
        """
        amounts, shaped = {"": AMOUNT[HALVES]}, copy_of(self.fixed)
        sums = [node for node in self.fixed.graph.node if is_onnx(node, *TERMS)]
        tensors = [[node.input[0], node.input[len(node.input[:2]) - 1], *filter(None, node.output)] for node in sums]
        names = dict.fromkeys(itertools.chain.from_iterable(tensors))
        shaped.graph.node.extend(helper.make_node("Shape", [name], [f"{name}/shape"]) for name in names)
        shapes = _values(shaped, [f"{name}/shape" for name in names], {}, self.inputs)
        for node, each in zip(sums, tensors, strict=True):
            terms = TERMS[node.op_type](*(shapes[f"{name}/shape"] for name in each[:3]))
            for name in each:
                amounts[name] = max(amounts.get(name, 0.0), AMOUNT[HALVES] * max(1.0, math.sqrt(terms / 24)))
        return amounts

    def _own(self) -> list[Array]:
        """Return how far the judge is from double sums, and these from sums that are added term by term."""
        wide = OnnxRuntime(with_wide_sums(self.fixed, self.types)).ask(self.inputs)
        off = farthest(self.outputs, [wide])
        if (serial := with_serial_sums(self.fixed, self.types)) is None:
            return off
        turns = farthest(wide, [OnnxRuntime(serial).ask(self.inputs)])
        return [np.add(own, other) for own, other in zip(off, turns, strict=True)]

    def _decided(self, precision: str) -> list[tuple[Array, float]] | None:
        """Return the outputs for comparisons that are as close as a precision allows, and how far one of them is."""
        compared = {name: value for name, value in self.compared.items() if value.dtype.kind == "f"}
        if not compared:
            return None
        amounts = self._amounts() if precision == HALVES else {"": AMOUNT[precision]}
        movements = zip(compared, self._moved(compared, amounts), strict=True)
        bounded = {name for node in self.model.graph.node if is_onnx(node, *_BOUNDED) for name in node.output}
        divided = {node.input[0] for node in self.model.graph.node if is_onnx(node, *_DIVIDING)}
        distances = {
            name: _reach(
                compared[name], moved, precision, amounts.get(name, amounts[""]), name not in bounded, name in divided
            )
            for name, moved in movements
        }
        values_of = partial(_values, self.model, constants=self.inputs, inputs=self.inputs)
        for name, same in decisions.compared_with_themselves(self.model, compared, values_of):
            distances[name][same] = 0
        judge = OnnxRuntime(decisions.with_pushes(self.model, compared))
        answers = [judge.ask({**self.inputs, **draw}) for draw in decisions.pushes(distances)]
        alike = [each for each in answers if all(a.shape == o.shape for a, o in zip(each, self.outputs, strict=True))]
        moves = [farthest(self.outputs, [answer]) for answer in alike]
        return [
            (
                np.fmax.reduce(off) if output.dtype.kind == "f" else np.stack(whole),
                max(peak_and_rms(distance.astype(np.float64))[1] for distance in off),
            )
            for output, whole, off in zip(self.outputs, zip(*alike, strict=True), zip(*moves, strict=True), strict=True)
        ]


def _in_older_operators(network: Any, inputs: Values, outputs: Sequence[Array]) -> tuple[Any, Sequence[Array]]:
    """Return a new network in operators whose numbers can be moved, if it then gives the judge's answer.

    Its decisions may fall otherwise: for onnxruntime and ONNX's reference -0.25 / 0.02 lies on two sides of -12.5. Then
    all is measured from its own answer, which is returned as well.
    """
    if opset_of(network) <= _NEWEST_OPSET:
        return network, outputs
    older = copy_of(network)
    if not lower_definitions(older, _NEWEST_OPSET):
        _prepare(older, inputs)
        lower_definitions(older, _NEWEST_OPSET)
    answers = OnnxRuntime(older).ask(inputs)
    if _agree(outputs, answers, [Measured() for _ in outputs]):
        return older, outputs
    return (older, answers) if _agree(outputs, answers, measure_leeway(older, inputs, answers)) else (network, outputs)


def _agree(outputs: Sequence[Array], answers: Sequence[Array], measured: Sequence[Measured]) -> bool:
    """Return whether answers are the judge's, but for what was measured of them."""
    for output, answer, each, distance in zip(outputs, answers, measured, farthest(outputs, [answers]), strict=True):
        precision = HALVES if output.dtype == HALVES else SINGLE
        leeway = each.leeway(ROUNDING_FACTOR[precision], precision)
        unexplained = relative_movement(np.maximum(distance.astype(np.float64) - leeway.flips(answer), 0), output)
        if not unexplained <= max(RELATIVE_TOLERANCE[precision], leeway.rounding):
            return False
    return True


def _prepare(model: Any, inputs: Values) -> None:
    fix_shapes(model, input_specs(model, {name: array.shape for name, array in inputs.items()}))
    prepare(model)


def _with_decisions(model: Any, inputs: Values) -> Any:
    """Return the network with each operator that rounds to 8 bits inside as ones that show what is rounded."""
    whole = copy_of(model)
    if any(kind_of(node) == QUANTISED for node in whole.graph.node):  # it rounds in each step
        _prepare(whole, inputs)
    write_fused(whole)
    write_quantised_as_floats(whole)
    write_integers_as_floats(whole, decided=True)
    return whole


def _decided_values(network: Any, model: Any, inputs: Values) -> Values:
    """Return how the judge decides, and how the network with its decisions shown does where the judge's are hidden."""
    results = {name for node in network.graph.node for name in node.output}
    names = [name for node in model.graph.node for name in operands.decisions(node)]
    decided = _values(network, [name for name in names if name in results], {}, inputs)
    return _values(decisions.hold(model, decided) if decided else model, names, decided, inputs)


def _values(model: Any, names: Sequence[str], constants: Values, inputs: Values) -> dict[str, Array]:
    """Return the values of these tensors, some of which are constants."""
    computed = [name for name in names if name not in constants]
    answers = OnnxRuntime(with_outputs(model, computed)).ask(inputs) if computed else []
    values = {**constants, **dict(zip(computed, answers, strict=True))}
    return {name: values[name] for name in names}


def _reach(value: Array, moved: Array, precision: str, amount: float, exact: bool, divided: bool) -> Array:
    """Return how far each compared number may be off: where it may be `exact` and does not move, only if `divided`.

    In half precision each number has its own bound, by how far it moves itself or numbers of the tensor do typically.
    """
    wide, off = value.astype(np.float64), moved.astype(np.float64)
    size = np.where(np.isfinite(wide), np.abs(wide), 0.0)
    if precision == SINGLE or np.isnan(off).any():
        peak, most = size.max(initial=0.0), np.fmax.reduce(off, axis=None, initial=0.0)
        allowed: Array = np.maximum(RELATIVE_TOLERANCE[precision] * peak, ROUNDING_FACTOR[precision] * most)
    else:
        allowed = np.maximum(np.maximum(off, peak_and_rms(off)[1]), amount * size) * ROUNDING_FACTOR[precision]
    with np.errstate(over="ignore"):
        fixed = exact & (moved == 0) & ((precision == SINGLE) | (wide == wide.astype(np.float16)))
    return np.where(fixed, divided * DIVISION[precision] * np.abs(wide), allowed).astype(value.dtype)


def _or(compute: Callable[[], _T], otherwise: _T) -> _T:
    """Return what is computed; something else if it cannot be: ONNX and onnxruntime have errors of every kind."""
    try:
        return compute()
    except MemoryError:
        raise
    except Exception:
        return otherwise
