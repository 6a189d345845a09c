"""Products of integers as products of floats that hold the same integers, which every path has kernels for.

A float32 holds every integer up to 2^24, so a product whose sums stay below is exact in any order of its terms. One
with larger sums is written as several, over parts of its channels, whose results are added as integers. A phone's own
runtime would compute in 8 bits: what is timed here is the same network in float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import TensorProto

from device_runner.device import Array
from harness.compile.models.outline import NetworkView, attribute_of, kind_of, operand
from harness.compile.models.preparation.editing import INTEGERS, NodeWriter, describe, rewrite

EXACT = 1 << 24
"""Float32 holds every integer up to here."""
LARGEST_INPUT = 255
"""Of 8 bits, less a zero point."""
MOST_PARTS = 16
_QGEMM = "com.microsoft.QGemm"
"""A Gemm of integers, of onnxruntime's optimiser, whose result may be real numbers."""
WINDOW = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def write_integers_as_floats(model: Any, *, decided: bool = False) -> str:
    """Write QLinearConv, QLinearMatMul, ConvInteger and MatMulInteger with weights that are known as float products.

    Only those that round their result to 8 bits if what is `decided` alone matters.
    """
    kinds_written = {kind for kind, places in _PLACES.items() if places.scales or not decided}

    def write_floats(node: Any, view: NetworkView, write: NodeWriter) -> bool:
        product = _Product.of(node, view, write) if kind_of(node) in kinds_written else None
        return product is not None and product.write()

    text = "wrote {} as float32 products of the same integers, which a phone would compute in 8 bits"
    return describe(text, rewrite(model, INTEGERS, write_floats))


@dataclass(frozen=True)
class _Places:
    """Where an operator has its inputs; 0 is none."""

    weight: int
    zero_point: int
    weight_zero_point: int
    scales: tuple[int, ...] = ()
    """Of the input, the weight and the result."""
    result_zero_point: int = 0
    bias: int = 0


_PLACES = {
    "QLinearConv": _Places(3, 2, 5, (1, 4, 6), 7, 8),
    "QLinearMatMul": _Places(3, 2, 5, (1, 4, 6), 7),
    "ConvInteger": _Places(1, 2, 3),
    "MatMulInteger": _Places(1, 2, 3),
    _QGEMM: _Places(3, 2, 5, (1, 4, 7), 8, 6),
}


class _Product:
    """One product of integers."""

    def __init__(self, node: Any, weight: Array, view: NetworkView, writer: NodeWriter) -> None:
        self.node, self.weight, self.view, self.writer = node, weight, view, writer
        self.places = _PLACES[kind_of(node)]
        self.is_conv = "Conv" in node.op_type

    @classmethod
    def of(cls, node: Any, view: NetworkView, writer: NodeWriter) -> _Product | None:
        """Return the product of a node; None if what it takes beside its input is not known."""
        places = _PLACES[kind_of(node)]
        weight: Any = view.constant(node, places.weight)
        if attribute_of(node, "transA", 0) or attribute_of(node, "alpha", 1.0) != 1.0:
            return None
        zero = view.constant(node, places.weight_zero_point)
        computed = [place for place in (*places.scales, places.bias) if place and _is_computed(node, place, view)]
        if weight is None or computed or _is_computed(node, places.weight_zero_point, view):
            return None
        numbers = weight.astype(np.int32)
        numbers = numbers.T if attribute_of(node, "transB", 0) else numbers
        if zero is not None and zero.size:
            numbers = numbers - _over_outputs(zero.astype(np.int32), numbers.ndim, conv="Conv" in node.op_type)
        return cls(node, numbers, view, writer)

    def write(self) -> bool:
        """Write the product; returns whether it can be exact."""
        parts = self._parts()
        if not parts:
            return False
        write, node = self.writer, self.node
        bias = self._numbers(self.places.bias) if self.places.bias else None
        data = self._minus_zero_point()
        exact = len(parts) == 1 and self._largest(self.weight, bias) < EXACT
        products = [self._multiply(self._channels(data, part, len(parts)), part) for part in parts]
        if exact:
            total = products[0]
            total = write.add("Add", total, self._constant(bias, np.float32)) if bias is not None else total
        else:
            first, *rest = [write.add("Cast", product, to=TensorProto.INT32) for product in products]
            rest += [self._constant(bias, np.int32)] if bias is not None else []
            for term in rest:
                first = write.add("Add", first, term)
            total = write.add("Cast", first, to=TensorProto.FLOAT)
        if not self.places.scales:
            write.add("Cast", total if exact else first, to=TensorProto.INT32, output=node.output[0])
            return True
        self._quantize(total)
        return True

    def _quantize(self, total: str) -> None:
        """Write the result in 8 bits: scaled by one number for each output, as onnxruntime does."""
        write, node = self.writer, self.node
        scale, weight_scale, result = (self._numbers(place) for place in self.places.scales)
        if result is None:
            factor = self._constant(scale * weight_scale, np.float32)
            write.add("Mul", total, factor, output=node.output[0])
            return
        scaled = write.add("Mul", total, self._constant(scale * weight_scale / result, np.float32))
        one = write.constant(np.ones((), np.float32))
        write.add("QuantizeLinear", scaled, one, node.input[self.places.result_zero_point], output=node.output[0])

    def _minus_zero_point(self) -> str:
        zero = operand(self.node, self.places.zero_point)
        one = self.writer.constant(np.ones((), np.float32))
        return self.writer.add("DequantizeLinear", *[name for name in (self.node.input[0], one, zero) if name])

    def _numbers(self, place: int) -> Any:
        return self.view.constant(self.node, place)

    def _constant(self, array: Array, kind: Any) -> str:
        return self.writer.constant(self._broadcast(array).astype(kind))

    def _broadcast(self, array: Array) -> Array:
        """Return numbers of outputs so that they broadcast over the result."""
        if not self.is_conv or array.size == 1:
            return array.reshape(-1) if array.ndim <= 1 and array.size > 1 else array.reshape(())
        return array.reshape(1, -1, *[1] * (self.weight.ndim - 2))

    def _largest(self, weight: Array, bias: Array | None = None) -> int:
        """Largest sum that the product can come to."""
        axes = tuple(range(1, weight.ndim)) if self.is_conv else (weight.ndim - 2,)
        sums = np.abs(weight.astype(np.int64)).sum(axes) * LARGEST_INPUT
        return int((sums + (0 if bias is None else np.abs(bias.astype(np.int64)))).max(initial=0))

    def _parts(self) -> list[tuple[int, int]]:
        """Return channels of the input, from and to, over each of which the sums are exact; empty if none are."""
        axis = 1 if self.is_conv else self.weight.ndim - 2
        length = self.weight.shape[axis]
        if self.is_conv and attribute_of(self.node, "group", 1) != 1:
            return [(0, length)] if self._largest(self.weight) < EXACT else []
        for count in range(1, MOST_PARTS + 1):
            size = -(-length // count)
            size = size + -size % 4 if count > 1 else size  # whole texels
            parts = [(start, min(start + size, length)) for start in range(0, length, size)]
            if all(self._largest(self._slice(part)) < EXACT for part in parts):
                return parts
        return []

    def _slice(self, part: tuple[int, int]) -> Array:
        axis = 1 if self.is_conv else self.weight.ndim - 2
        return self.weight.take(range(*part), axis)

    def _channels(self, data: str, part: tuple[int, int], count: int) -> str:
        return data if count == 1 else self.writer.slice(data, *part, 1 if self.is_conv else -1)

    def _multiply(self, data: str, part: tuple[int, int]) -> str:
        whole = self.is_conv and attribute_of(self.node, "group", 1) != 1
        weight = self.writer.constant((self.weight if whole else self._slice(part)).astype(np.float32))
        if not self.is_conv:
            return self.writer.add("MatMul", data, weight)
        given = {name: attribute_of(self.node, name, None) for name in WINDOW}
        attributes = {name: value for name, value in given.items() if value is not None}
        return self.writer.add("Conv", data, weight, **attributes)


def _is_computed(node: Any, place: int, view: NetworkView) -> bool:
    return bool(operand(node, place)) and view.constant(node, place) is None


def _over_outputs(zero: Any, rank: int, *, conv: bool) -> Any:
    """Return zero points, one or one for each output, so that they broadcast over a weight."""
    if zero.ndim > 1 or zero.size == 1:
        return zero if zero.ndim > 1 else zero.reshape(())
    return zero.reshape(-1, *[1] * (rank - 1)) if conv else zero
