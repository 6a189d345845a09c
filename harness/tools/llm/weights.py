"""Weights by our names, the number formats in which a library takes them, and some that are drawn from a seed.

Formats are plain, or 4 bits in groups as MLC keeps them: eight numbers lie in a `uint32`, the first in its lowest bits,
32 neighbours along the inputs share a scale, and a number is (nibble - 7) * scale (mlc-llm,
quantization/group_quantization.py). NK keeps a matrix as (outputs, inputs), KN transposed, which is MLC's advice for
Adreno. What is read from files is in `harness.tools.llm.folders`.
"""

from __future__ import annotations

import math
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from device_runner.device import Array
from device_runner.store import key_of
from harness.base.failures import ModelError, OracleNotFinite
from harness.tools.llm.config import LlmConfig

NUMBER_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "uint32": 4}
GROUP = 32
PER_WORD = 8
ZERO = 7
"""The nibble that means 0."""
TILE_BYTES, TILE_THREADS = 64, 128
"""Of a tile of a prompt in TVM's attention: bytes of a column, and threads that share it."""


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


SEED = "seed"
BLOCK_ROWS = 8192
"""Rows of a matrix that are computed at once: the table of a network of a billion weights has 128,000."""
RARE_SHARE, SMALLEST_EMBEDDING = 0.25, 1e-3
"""Tokens whose embeddings are as small as the first norm's epsilon, as those of rare words are: with large ones alone
an epsilon that is left out moves nothing."""
OUTLIER_SHARE, OUTLIER_FACTOR = 0.02, 6.0
"""Trained networks have a few channels of large numbers, in which half precision and 4 bits lose most (LLM.int8(),
Dettmers et al. 2022)."""
SINK_SHARE, SINK = 0.125, 1000.0
"""Tokens whose first number is this large. Trained networks have such numbers, in SmolLM2-135M up to 21,828: half
precision has no square of them. Without them a norm that squares in half precision is right."""


@dataclass(frozen=True)
class ModelWeights(ABC):
    """Weights of a network, by our names."""

    config: LlmConfig

    @property
    @abstractmethod
    def key(self) -> str:
        """Hash of the numbers."""

    @abstractmethod
    def tensor(self, name: str) -> Array:
        """Return a weight as float32."""

    @abstractmethod
    def require_complete(self) -> None:
        """Raise ModelError unless every weight is there in the right shape."""


@dataclass(frozen=True)
class SeededWeights(ModelWeights):
    """Random weights that look trained: unit gain, and a few channels of outliers."""

    @property
    def key(self) -> str:
        """Hash of the shape, and of how numbers are drawn."""
        drawn = [RARE_SHARE, SMALLEST_EMBEDDING, OUTLIER_SHARE, OUTLIER_FACTOR, SINK_SHARE, SINK]
        return key_of({"drawn": drawn, **asdict(self.config)})

    def tensor(self, name: str) -> Array:
        """Return a weight; the same name has the same numbers in every run."""
        import numpy as np

        return np.asarray(self._draw(name, np.random.default_rng(zlib.crc32(name.encode()))), np.float32)

    def require_complete(self) -> None:
        """Do nothing: none is missing."""

    def _draw(self, name: str, rng: Any) -> Any:
        import numpy as np

        shape = self.config.shapes[name]
        normal = rng.standard_normal(shape, dtype=np.float32)
        if "norm" in name:
            scale = (1 + 0.1 * normal) * np.where(rng.random(shape) < OUTLIER_SHARE, OUTLIER_FACTOR, 1.0)
            scale[0] /= SINK if name == "norm.weight" else 1.0  # or a tied head would see nothing else
            return scale
        if name.endswith("bias"):
            return 0.5 * normal
        rows = np.where(rng.random((shape[0], 1)) < OUTLIER_SHARE, OUTLIER_FACTOR / 2, 1.0) / np.sqrt(shape[-1])
        if name == "embed.weight":
            rare = rng.random((shape[0], 1)) < RARE_SHARE
            small = max(np.sqrt(self.config.eps), SMALLEST_EMBEDDING)
            numbers = normal * np.where(rare, small, rows if self.config.tied else 1.0)
            numbers[rng.random(shape[0]) < SINK_SHARE, 0] = SINK
            return numbers
        return normal * rows


def require_sizes(config: LlmConfig, form: Format) -> None:
    """Raise ModelError for rows that cannot be cut into groups of 4-bit numbers, and heads that TVM has no kernel for.

    TVM's attention cuts prompts into tiles of rows, and gives each thread as many numbers of a tile
    (relax/frontend/nn/llm/_kernel_common.py, `_get_prefill_kernel_config`).
    """
    rows = TILE_BYTES // NUMBER_BYTES[form.dtype]
    if config.head_dim % (least := TILE_THREADS // rows):
        why = f"{TILE_THREADS} threads share tiles of {rows} rows, so heads need a multiple of {least} numbers"
        hint = "take a format in half precision, such as `--format float16`" if config.head_dim % 4 == 0 else ""
        raise ModelError(f"TVM builds no attention in {form.dtype} for heads of {config.head_dim}: {why}", hint=hint)
    if form.layout and (odd := {shape[1] for shape in config.shapes.values() if len(shape) == 2 and shape[1] % GROUP}):
        why = f"{form.name} needs rows of a multiple of {GROUP}, and this network has rows of {min(odd)}"
        raise ModelError(why, hint="take `--format float32` or `--format float16`")


def is_packed(name: str, form: Format) -> bool:
    """Return whether a weight is kept in 4 bits: every matrix is."""
    return bool(form.layout) and name.endswith(".weight") and "norm" not in name


def is_transposed(name: str, form: Format) -> bool:
    """Return whether a packed matrix is kept as (inputs, outputs). The table of embeddings is read by rows."""
    return form.layout == "KN" and name != "embed.weight"


def library_tensors(weights: ModelWeights, form: Format) -> Iterator[tuple[str, Array]]:
    """Yield what a library takes, by name, in the order of its parameters."""
    for name in weights.config.shapes:
        tensor = weights.tensor(name)
        if is_packed(name, form):
            for kind, array in zip((".words", ".scale"), pack(tensor, form.dtype), strict=True):
                yield name.replace(".weight", kind), array.T if is_transposed(name, form) else array
        else:
            yield name, tensor.astype(form.dtype)


def row_blocks(matrix: Array) -> list[Array]:
    """Cut a matrix, so that what is computed of it takes little memory beside it."""
    return [matrix[begin : begin + BLOCK_ROWS] for begin in range(0, len(matrix), BLOCK_ROWS)]


def effective_tensor(weights: ModelWeights, form: Format, name: str) -> Array:
    """Return the numbers of a weight that a library computes with, as float32.

    They are those of the format, in which rounding is no error of the compiler. Raises OracleNotFinite: any answer
    would be right.
    """
    import numpy as np

    tensor = weights.tensor(name)
    if is_packed(name, form):
        numbers = np.concatenate([unpack(*pack(block, form.dtype)) for block in row_blocks(tensor)])
    else:
        with np.errstate(over="ignore"):
            numbers = tensor.astype(form.dtype).astype(np.float32)
    if not np.isfinite(numbers).all():
        raise OracleNotFinite(f"{name} has numbers that are not finite in {form.dtype}")
    return numbers
