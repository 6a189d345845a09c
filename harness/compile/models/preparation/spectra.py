"""DFT and STFT as products with the matrix of the transform: TVM's importer has neither.

X[k] = sum over n of x[n] (cos(2 pi k n / N) - i sin(2 pi k n / N)); the inverse has the other sign and a factor of
1 / N, and makes real numbers of half a spectrum. Source: ONNX's definition of DFT and STFT,
https://onnx.ai/onnx/operators.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx import TensorProto

from device_runner.device import Array
from harness.compile.models.outline import NetworkView, attribute_of, operand, opset_of
from harness.compile.models.preparation.constants import fold
from harness.compile.models.preparation.editing import NodeWriter, describe, rewrite

LARGEST_MATRIX_BYTES = 64 << 20
"""Largest matrix of a transform; that of 2048 points and all of their frequencies is half of it."""
PARTS = (1, 2)
"""Extent of the last axis of real and of complex numbers."""
AXIS_IS_INPUT = 20
"""First operator set in which a DFT has its axis as an input."""


def write_spectra(model: Any) -> str:
    """Write transforms of float32 as products, where their length is known and their window is a constant."""
    gone = rewrite(model, "spectrum", _write_product, "DFT", "STFT")
    if gone:
        fold(model)  # ONNX infers no shape of what these were
    return describe("wrote {} as products", gone)


def _write_product(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    if view.number_format(node.input[0]) != TensorProto.FLOAT:
        return False
    return (_write_dft if node.op_type == "DFT" else _write_stft)(node, view, write)


def write_to_real(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Write the inverse transform of half a spectrum, which onnxruntime (1.24) refuses."""
    half, inverse = (attribute_of(node, name, 0) for name in ("onesided", "inverse"))
    return bool(half and inverse) and _write_product(node, view, write)


def _matrix(points: int, bins: int, rows: int, parts: int, inverse: bool) -> Array:
    """Return the transform of `rows` numbers as [rows * parts, bins * 2], real and imaginary part side by side."""
    turns = np.outer(np.arange(rows), np.arange(bins)) % points
    angles = (1 if inverse else -1) * 2 * np.pi * turns / points
    scale = points if inverse else 1
    cosines, sines = np.cos(angles) / scale, np.sin(angles) / scale
    of_real = np.stack([cosines, sines], -1)
    of_both = np.stack([of_real, np.stack([-sines, cosines], -1)], 1) if parts == 2 else of_real
    return of_both.reshape(rows * parts, bins * 2).astype(np.float32)


def _matrix_to_real(points: int, rows: int, parts: int) -> Array:
    """Return the inverse transform of half a spectrum to real numbers, as [rows * parts, points].

    The other half is the same mirrored, so that all but the constant and the fastest wave count twice.
    """
    waves = np.arange(rows)[:, None]
    angles = 2 * np.pi * (waves * np.arange(points) % points) / points
    shares = np.where(waves * 2 % points == 0, 1, 2) / points
    of_both = np.stack([shares * np.cos(angles), -shares * np.sin(angles)], 1)
    return of_both[:, :parts].reshape(rows * parts, points).astype(np.float32)


def _is_large(rows: int, bins: int, parts: int) -> bool:
    return rows * parts * bins * 2 * 4 > LARGEST_MATRIX_BYTES


def _write_dft(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    shape, length = view.shape(node.input[0]), view.constant(node, 1)
    axis_given = view.constant(node, 2)
    if shape is None or shape[-1] not in PARTS or (operand(node, 1) and length is None):
        return False
    if operand(node, 2) and axis_given is None:
        return False
    rank, parts = len(shape), shape[-1]
    usual = -2 if opset_of(view.model) >= AXIS_IS_INPUT else 1
    axis = (int(axis_given.item()) if axis_given is not None else attribute_of(node, "axis", usual)) % rank
    half, inverse = bool(attribute_of(node, "onesided", 0)), bool(attribute_of(node, "inverse", 0))
    to_real = half and inverse
    points = int(length.item()) if length is not None else 2 * (shape[axis] - 1) if to_real else shape[axis]
    waves = points // 2 + 1 if half else points
    rows, bins, width = (waves, points, 1) if to_real else (points, waves, 2)
    rows = min(rows, shape[axis])
    if axis == rank - 1 or points < 1 or _is_large(rows, bins, parts):
        return False
    matrix = _matrix_to_real(points, rows, parts) if to_real else _matrix(points, bins, rows, parts, inverse)
    order = [i for i in range(rank - 1) if i != axis] + [axis, rank - 1]
    data = node.input[0]
    if rows < shape[axis]:
        data = write.slice(data, 0, rows, axis)
    others = [shape[i] for i in order[:-2]]
    flat = write.add(
        "Reshape", write.add("Transpose", data, perm=order), write.integers(math.prod(others), rows * parts)
    )
    product = write.add("MatMul", flat, write.constant(matrix))
    whole = write.add("Reshape", product, write.integers(*others, bins, width))
    write.add("Transpose", whole, perm=[order.index(i) for i in range(rank)], output=node.output[0])
    return True


def _write_stft(node: Any, view: NetworkView, write: NodeWriter) -> bool:
    """Write a convolution along the signal, whose filters are the windowed waves."""
    shape, step, window = view.shape(node.input[0]), view.constant(node, 1), view.constant(node, 2)
    frame = view.constant(node, 3)
    if shape is None or step is None or (operand(node, 2) and window is None) or (operand(node, 3) and frame is None):
        return False
    if window is None and frame is None:
        return False
    points = int(frame.item()) if frame is not None else len(window)  # type: ignore[arg-type]
    bins = points // 2 + 1 if attribute_of(node, "onesided", 1) else points
    real = len(shape) == 2 or shape[2] == 1
    if not real or points > shape[1] or _is_large(points, bins, 1):
        return False
    matrix = _matrix(points, bins, points, 1, inverse=False)
    if window is not None:
        matrix = (matrix.astype(np.float64) * window.astype(np.float64)[:, None]).astype(np.float32)
    filters = matrix.reshape(points, bins, 2).transpose(2, 1, 0).reshape(2 * bins, 1, points)
    frames = (shape[1] - points) // int(step.item()) + 1
    signal = write.add("Reshape", node.input[0], write.integers(shape[0], 1, shape[1]))
    waves = write.add("Conv", signal, write.constant(filters), strides=[int(step.item())])
    parts = write.add("Reshape", waves, write.integers(shape[0], 2, bins, frames))
    write.add("Transpose", parts, perm=[0, 3, 2, 1], output=node.output[0])
    return True
