"""Weights by our names: drawn from a seed, or read from a folder of safetensors; and as a library takes them."""

from __future__ import annotations

import functools
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from device_runner.store import key_of, sha256_of
from harness.base.failures import ModelError, OracleNotFinite
from harness.tools.llm.config import LlmConfig
from harness.tools.llm.formats import GROUP, Format, pack, unpack
from harness.tools.llm.safetensors import OTHER_WEIGHTS, StoredTensor, list_tensors, require_readable

if TYPE_CHECKING:
    from device_runner.device import Array

SEED = "seed"
"""The word for seeded weights."""
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


_HEAD = "lm_head.weight"
MODULES = {
    "embed": ["model.embed_tokens"],
    "norm": ["model.norm"],
    "head": ["lm_head"],
    "norm1": ["model.layers.{}.input_layernorm"],
    "qkv": [f"model.layers.{{}}.self_attn.{letter}_proj" for letter in "qkv"],
    "q_norm": ["model.layers.{}.self_attn.q_norm"],
    "k_norm": ["model.layers.{}.self_attn.k_norm"],
    "o": ["model.layers.{}.self_attn.o_proj"],
    "norm2": ["model.layers.{}.post_attention_layernorm"],
    "gate_up": ["model.layers.{}.mlp.gate_proj", "model.layers.{}.mlp.up_proj"],
    "down": ["model.layers.{}.mlp.down_proj"],
}
"""Hugging Face's names of the modules that have a weight of ours, in the order of its rows."""


def modules_of(name: str, modules: Mapping[str, Sequence[str]]) -> list[str]:
    """Return others' names of the modules of a weight of ours, such as `layers.3.qkv.weight`."""
    *layer, part, _ = name.split(".")
    return [module.format(*layer[1:]) for module in modules[part]]


@dataclass(frozen=True)
class ModelWeights(ABC):
    """Weights of a network, by our names."""

    config: LlmConfig

    @abstractmethod
    def tensor(self, name: str) -> Array:
        """Return a weight as float32."""


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

        rng = np.random.default_rng(zlib.crc32(name.encode()))
        numbers: Array = self._draw(name, self.config.shapes[name], rng).astype(np.float32)
        return numbers

    def require_complete(self) -> None:
        """Do nothing: none is missing."""

    def _draw(self, name: str, shape: tuple[int, ...], rng: Any) -> Any:
        import numpy as np

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


@dataclass(frozen=True)
class FolderWeights(ModelWeights):
    """Weights of a Hugging Face folder. Raises ModelError if one is missing or has another shape."""

    folder: Path

    @functools.cached_property
    def _stored(self) -> dict[str, StoredTensor]:
        return list_tensors(self.folder)

    @functools.cached_property
    def key(self) -> str:
        """Hash of the files."""
        files = sorted({tensor.file for tensor in self._stored.values()})
        return key_of({"files": [sha256_of(file) for file in files]})

    def tensor(self, name: str) -> Array:
        """Return a weight; ours that stand for several of theirs are put together."""
        import numpy as np

        parts = [self._find(theirs, shape).read() for theirs, shape in self._parts(name)]
        return np.concatenate(parts, dtype=np.float32)

    def require_complete(self) -> None:
        """Raise ModelError unless every weight is there in the right shape, and none besides."""
        parts = dict(part for name in self.config.shapes for part in self._parts(name))
        for theirs, shape in parts.items():
            self._find(theirs, shape)
        for name in self._stored:
            if name not in parts and not name.endswith(_UNUSED) and not (self.config.tied and name == _HEAD):
                raise ModelError(f"{self.folder} has {name}, of which config.json says nothing", hint=OTHER_WEIGHTS)

    def _find(self, name: str, shape: tuple[int, ...]) -> StoredTensor:
        stored = self._stored.get(name)
        if stored is None:
            raise ModelError(f"{self.folder} has no tensor {name}", hint=OTHER_WEIGHTS)
        require_readable(name, stored, shape)
        return stored

    def _parts(self, name: str) -> list[tuple[str, tuple[int, ...]]]:
        """Return Hugging Face's tensors that ours consists of, with their shapes."""
        config, shape = self.config, self.config.shapes[name]
        *_, part, kind = name.split(".")
        rows = [config.heads * config.head_dim, *[config.kv_heads * config.head_dim] * 2]
        split = {"qkv": rows, "gate_up": [config.intermediate] * 2}.get(part, [shape[0]])
        modules = modules_of(name, MODULES)
        return [(f"{module}.{kind}", (count, *shape[1:])) for module, count in zip(modules, split, strict=True)]


Weights = SeededWeights | FolderWeights


@functools.lru_cache(maxsize=8)
def weights_of(config: LlmConfig, place: str) -> Weights:
    """Return the weights of a network: seeded, or of a folder."""
    return SeededWeights(config) if place == SEED else FolderWeights(config, Path(place))


_UNUSED = ".rotary_emb.inv_freq"
"""End of the names of tables of rotations, which older folders have."""


def require_groups(config: LlmConfig, form: Format) -> None:
    """Raise ModelError for a network whose rows cannot be cut into groups of 4-bit numbers."""
    if form.layout and (odd := {shape[1] for shape in config.shapes.values() if len(shape) == 2 and shape[1] % GROUP}):
        raise ModelError(f"{form.name} needs rows of a multiple of {GROUP}, and this network has rows of {min(odd)}")


def is_packed(name: str, form: Format) -> bool:
    """Return whether a weight is kept in 4 bits: every matrix is."""
    return bool(form.layout) and name.endswith(".weight") and "norm" not in name


def is_transposed(name: str, form: Format) -> bool:
    """Return whether a packed matrix is kept as (inputs, outputs). The table of embeddings is read by rows."""
    return form.layout == "KN" and name != "embed.weight"


def library_tensors(weights: Weights, form: Format) -> Iterator[tuple[str, Array]]:
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
