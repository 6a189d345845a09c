"""Number formats of weights: plain, or 4 bits in groups as MLC keeps them.

Eight numbers lie in a `uint32`, the first in its lowest bits; 32 neighbours along the inputs share a scale, and a
number is (nibble - 7) * scale (mlc-llm, quantization/group_quantization.py). NK keeps a matrix as (outputs, inputs),
KN transposed, which is MLC's advice for Adreno.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from device_runner.device import Array

NUMBER_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "uint32": 4}
WEIGHT_LIST = "tensor-cache.json"
"""Name of the list in a folder of weights, as TVM's loader wants it (tvm/contrib/tvmjs.py)."""
GROUP = 32
PER_WORD = 8
ZERO = 7
"""The nibble that means 0."""


@dataclass(frozen=True)
class Format:
    """How weights are kept, and what is computed in."""

    name: str
    dtype: str
    layout: Literal["", "NK", "KN"] = ""
    """Layout of 4-bit matrices; empty without 4 bits."""


FORMATS = {
    form.name: form
    for form in (
        Format("float32", "float32"),
        Format("float16", "float16"),
        Format("q4f16_0", "float16", "KN"),
        Format("q4f16_1", "float16", "NK"),
        Format("q4f32_1", "float32", "NK"),
    )
}


def weight_sizes(parameters: Iterable[tuple[str, Sequence[int], str]]) -> list[int]:
    """Return the size of each weight in bytes, by name, shape and number format; at least, of a format of others."""
    return [math.prod(shape) * NUMBER_BYTES.get(dtype, 1) for _, shape, dtype in parameters]


def pack(matrix: Array, dtype: str) -> tuple[Array, Array]:
    """Return words and scales of a matrix (outputs, inputs). Its inputs must be a multiple of `GROUP`."""
    import numpy as np

    outputs, inputs = matrix.shape
    groups = matrix.astype(np.float32).reshape(outputs, inputs // GROUP, GROUP)
    scale = (np.abs(groups).max(-1) / ZERO).astype(dtype)
    divisor = np.where(scale == 0, np.inf, scale.astype(np.float32))  # a group of zeros has scale 0
    nibbles = np.clip(np.rint(groups / divisor[..., None]) + ZERO, 0, 2 * ZERO).astype(np.uint32)
    nibbles = nibbles.reshape(outputs, inputs // PER_WORD, PER_WORD)
    shifts = np.arange(PER_WORD, dtype=np.uint32) * np.uint32(4)
    return np.bitwise_or.reduce(nibbles << shifts, axis=-1), scale


def unpack(words: Array, scale: Array) -> Array:
    """Return the numbers that words and scales stand for, as float32 (outputs, inputs)."""
    import numpy as np

    shifts = np.arange(PER_WORD, dtype=np.uint32) * np.uint32(4)
    nibbles = (words[..., None] >> shifts) & np.uint32(15)
    numbers: Any = nibbles.reshape(words.shape[0], -1).astype(np.float32) - np.float32(ZERO)
    unpacked: Array = numbers * np.repeat(scale.astype(np.float32), GROUP, axis=1)
    return unpacked
