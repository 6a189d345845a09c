"""Networks of two or three random operators in a chain, which share inputs and read each other's results.

    python -m benchmarks.operator_attributes FOLDER --chain 3 [--seed N | --today] [--count N] [OPERATOR ...]

What an operator takes as its input is a new one, or an earlier result that is cut, padded or repeated to its shape.
Some results are added to earlier ones, some are rounded to 8 bits, and some are also outputs. All operators of a
network are of one operator set: one that needs another is drawn again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.operator_attributes import LACKING, OPERATORS, OPSET, Draw, note_shapes
from device_runner.failures import Failure
from harness.compile.models.onnx_inputs import input_specs
from harness.compile.models.spec import seeded_inputs
from harness.compile.oracle.truth import first_answer, judges_of

DRAWS = 8
"""How often an operator, or a network, is drawn until it is valid."""
MOST_ELEMENTS = 20_000
LARGEST = 20.0
"""Numbers beyond it are bounded before the next operator reads them."""
BOUNDS = ("Tanh", "Softsign", "Sigmoid")
INVALID = (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, Failure, ValueError, IndexError)


class OtherOpset(ValueError):
    """An operator is of another operator set than those before it."""


class ChainDraw(Draw):
    """A network whose operators read what others have made."""

    def __init__(self, seed: Sequence[int]) -> None:
        self._opset = 0
        super().__init__(seed)
        self._opset = 0
        self.readable: list[str] = []
        """Inputs and results of real numbers, the last one last."""

    @property
    def opset(self) -> int:
        """The operator set; the first operator that needs one decides."""
        return self._opset or OPSET

    @opset.setter
    def opset(self, version: int) -> None:
        if self._opset not in (0, version) and hasattr(self, "readable"):
            raise OtherOpset
        self._opset = version

    def _reads_on(self) -> bool:
        return bool(self.readable) and self.pick(False, True, True, True)

    def _input(self, *shape: int) -> str:
        if self._reads_on():
            return self.fit(self.pick(*self.readable[-3:]), shape)
        self.readable.append(super()._input(*shape))
        return self.readable[-1]

    def image(self, channels: int = 0) -> str:
        """Add an image, or let what follows read the last result if it is one."""
        return self._last(channels, 4) or super().image(channels or self.pick(1, 3, 4, 5, 8, 17))

    def grid(self, channels: int = 0) -> str:
        """Add a signal, an image or a volume, or let what follows read the last result if it is one."""
        return self._last(channels, 3, 4, 5) or super().grid(channels)

    def _last(self, channels: int, *axes: int) -> str:
        """Let what follows read the last result, if it has so many axes and channels; empty if not."""
        shape = self.shape_of(self.readable[-1]) if self._reads_on() else ()
        if len(shape) not in axes or channels not in (0, shape[1]) or shape[1] > 17 or min(shape[2:]) < 3:
            return ""
        self.x, self.shape = self.readable[-1], shape
        return self.x

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return tuple(size.dim_value for size in self.kind(name).shape.dim)

    def fit(self, name: str, shape: Sequence[int]) -> str:
        """Return a tensor of this shape with the numbers of another. Raises ValueError if it has none."""
        own = self.shape_of(name)
        size, wanted = math.prod(own), math.prod(shape)
        if not size:
            raise ValueError(f"{name} has no numbers, or its shape is not known")
        if own == tuple(shape):
            return name
        if len(own) == len(shape) and all(here >= there for here, there in zip(own, shape, strict=True)):
            return self.apply("Slice", name, self.integers(*[0] * len(own)), self.integers(*shape))
        if len(own) == len(shape) and all(here <= there for here, there in zip(own, shape, strict=True)):
            behind = (there - here for here, there in zip(own, shape, strict=True))
            return self.apply("Pad", name, self.integers(*[0] * len(own), *behind), self.scalar(0.25))
        flat = self.apply("Reshape", name, self.integers(-1))
        if size < wanted:
            flat = self.apply("Tile", flat, self.integers(-(-wanted // size)))
        if size != wanted:
            flat = self.apply("Slice", flat, self.integers(0), self.integers(wanted))
        return self.apply("Reshape", flat, self.integers(*shape))

    def through_8_bits(self, name: str) -> str:
        """Round a tensor to 8 bits and back."""
        scale = self.scalar(self.pick(0.02, 0.07))
        zero = self.constant(self.pick(np.int8(-3), np.int8(0), np.uint8(100), np.uint8(128)))
        return self.apply("DequantizeLinear", self.apply("QuantizeLinear", name, scale, zero), scale, zero)


def chain(names: Sequence[str], *seed: int) -> onnx.ModelProto:
    """Return a network of these operators, the same for the same seed. Raises ValueError if none of many is valid."""
    for draw in range(DRAWS):
        net, outputs = ChainDraw([*seed, draw]), dict[str, None]()
        try:
            for name in names:
                outputs |= dict.fromkeys(_step(net, name))
            outputs[net.readable[-1]] = None
            model = _pruned(net.typed_model(*(name for name in outputs if name not in net.inputs)))
            note_shapes(model, _answers(model))
            onnx.checker.check_model(model, full_check=True)
        except INVALID:
            continue
        return model
    raise ValueError(f"{', '.join(names)}: none of {DRAWS} networks is valid")


def _step(net: ChainDraw, name: str) -> list[str]:
    """Add an operator and what reads its results; returns the results that are also outputs of the network."""
    for _ in range(DRAWS):
        before = list(net.nodes), list(net.weights), dict(net.inputs), list(net.readable), net._opset
        try:
            results = OPERATORS[name](net)
            results = [results] if isinstance(results, str) else list(results)
            numbers = _answers(net.typed_model(*results))
            if all(_is_usable(array) and math.prod(net.shape_of(r)) for r, array in zip(results, numbers, strict=True)):
                break
        except INVALID:
            pass
        net.nodes, net.weights, net.inputs, net.readable, net._opset = before
    else:
        raise ValueError(name)
    for result, array in zip(results, numbers, strict=True):
        real = result if array.dtype == np.float32 else net.apply("Cast", result, to=TensorProto.FLOAT)
        far = float(np.abs(array.astype(np.float64)).max()) > LARGEST
        net.readable.append(net.apply(net.pick(*BOUNDS), real) if far else real)
    last = net.readable[-1]
    if net.pick(0, 0, 1):
        last = net.apply(net.pick("Add", "Mul", "Sub"), last, net.fit(net.pick(*net.readable), net.shape_of(last)))
    if net.pick(0, 0, 1):
        last = net.through_8_bits(last)
    net.readable.append(last)
    return [result for result in results if net.pick(0, 0, 0, 1)]


def _answers(model: onnx.ModelProto) -> list[np.ndarray]:
    return [np.asarray(each) for each in first_answer(judges_of(model), seeded_inputs(input_specs(model), 0)).outputs]


def _is_usable(array: np.ndarray) -> bool:
    return 0 < array.size <= MOST_ELEMENTS and bool(np.isfinite(array.astype(np.float64)).all())


def _pruned(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the network without operators, weights and inputs that no output needs."""
    graph, read = model.graph, {value.name for value in model.graph.output}
    for place, node in reversed([*enumerate(graph.node)]):
        if read.isdisjoint(node.output):
            del graph.node[place]
        else:
            read.update(node.input)
    for values in (graph.initializer, graph.input):
        for place, value in reversed([*enumerate(values)]):
            if value.name not in read:
                del values[place]
    if not graph.input:
        raise ValueError("no output depends on an input")
    return model


def chains(seed: int, count: int, length: int, names: Sequence[str] = ()) -> Iterator[tuple[str, onnx.ModelProto]]:
    """Yield networks of two operators up to so many, by name: of those that are named, or of all that build."""
    known = names or [name for name in OPERATORS if name not in LACKING]
    for number in range(count):
        rng = np.random.default_rng([seed, number])
        for draw in range(DRAWS):
            chosen = [known[int(rng.integers(len(known)))] for _ in range(int(rng.integers(2, length, endpoint=True)))]
            try:
                yield f"{'-'.join(chosen)}_{seed}_{number}", chain(chosen, seed, number, draw)
                break
            except ValueError:
                continue
