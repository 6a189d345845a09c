"""A folder that `mlc_llm convert_weight` and `gen_config` wrote: its settings, its weights, and the numbers in them.

Sources: mlc-llm, interface/gen_config.py (settings), quantization/group_quantization.py and model/*/*_model.py (names);
tvm/contrib/tvmjs.py (the list of weights).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, ValidationError

from device_runner.store import key_of, sha256_of
from harness.base.failures import ModelError
from harness.tools.llm.config import ConfigFile, LlmConfig
from harness.tools.llm.foreign import DOWNLOAD_AGAIN, Foreign, file_beside, read_foreign
from harness.tools.llm.formats import PER_WORD, WEIGHT_LIST, unpack
from harness.tools.llm.safetensors import StoredTensor
from harness.tools.llm.weights import MODULES, ModelWeights, modules_of

if TYPE_CHECKING:
    from device_runner.device import Array

SETTINGS = "mlc-chat-config.json"
LISTS = (WEIGHT_LIST, "ndarray-cache.json")
"""Names of the list of weights; the second is that of mlc-llm until 2025."""
READABLE_FORMAT = re.compile(r"q0f(16|32)|q4f(16|32)_[0-2]")
"""Number formats whose weights can be read: plain, or 4 bits in groups of 32."""
MOST_PARAMETERS = 2_000_000_000
"""Weights of the largest network that numpy judges: of more it would compute for hours."""
HALVED = "f32-to-bf16"
"""Word of the list for float32 numbers of which only the upper half is stored."""
_HINT = "give the folder that `mlc_llm convert_weight` and `gen_config` wrote"


class ModelSettings(Foreign):
    """What the folder of weights says of the model."""

    model_type: str = ""
    quantization: str = ""
    vocab_size: int = Field(gt=0, le=1 << 22)
    shape: dict[str, Any] = Field({}, alias="model_config")

    @property
    def dtype(self) -> str:
        """What is computed in."""
        return "float32" if "f32" in self.quantization else "float16"

    @property
    def network(self) -> LlmConfig | None:
        """Its network; None if it is not ours, or too large to be judged."""
        theta = self.shape.get("position_embedding_base", self.shape.get("rope_theta"))
        try:
            fields = ConfigFile.model_validate({**self.shape, "model_type": self.model_type, "rope_theta": theta})
        except ValidationError:
            return None
        if fields.complaint or not READABLE_FORMAT.fullmatch(self.quantization):
            return None
        return fields.network if fields.network.parameters <= MOST_PARAMETERS else None


class StoredWeight(Foreign):
    """A weight in the list."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    format: str = "raw"
    byteOffset: int = Field(0, ge=0)

    @property
    def count(self) -> int:
        """How many numbers it stands for."""
        return math.prod(self.shape) * (PER_WORD if self.dtype == "uint32" else 1)


class Shard(Foreign):
    """A file of weights."""

    dataPath: str
    nbytes: int = Field(ge=0)
    records: tuple[StoredWeight, ...]


class Totals(Foreign):
    """What the converter says of all weights together."""

    ParamBytes: float = Field(0.0, ge=0, le=1e15)
    BitsPerParam: float | None = Field(None, ge=1, le=64)


class WeightList(Foreign):
    """All weights of a folder."""

    metadata: Totals = Totals()
    records: tuple[Shard, ...] = Field(min_length=1)


@dataclass(frozen=True)
class MlcFolder:
    """A folder of weights as `mlc_llm convert_weight` and `gen_config` write it. Raises ModelError for another."""

    place: Path

    @cached_property
    def settings(self) -> ModelSettings:
        """The settings of the model."""
        return read_foreign(self.place / SETTINGS, ModelSettings, _HINT)

    @cached_property
    def list_file(self) -> Path:
        """The list of weights."""
        return next((file for name in LISTS if (file := self.place / name).is_file()), self.place / WEIGHT_LIST)

    @cached_property
    def weights(self) -> dict[str, StoredWeight]:
        """Weights by name."""
        return {weight.name: weight for shard in self.listed.records for weight in shard.records}

    @cached_property
    def shards(self) -> dict[str, str]:
        """Name of the file of each weight."""
        return {weight.name: shard.dataPath for shard in self.listed.records for weight in shard.records}

    @property
    def parameters(self) -> int:
        """Number of weights, as the converter says; else eight in each word, and no scales."""
        totals = self.listed.metadata
        if totals.BitsPerParam:
            return round(8 * totals.ParamBytes / totals.BitsPerParam)
        numbers = (weight for weight in self.weights.values() if not weight.name.endswith("_scale"))
        return sum(weight.count for weight in numbers)

    @cached_property
    def listed(self) -> WeightList:
        """What the list says. Its files are as long as it says."""
        listed = read_foreign(self.list_file, WeightList, _HINT)
        for shard in listed.records:
            file = file_beside(self.list_file, shard.dataPath)
            if file.stat().st_size != shard.nbytes:
                why = f"{file} has {file.stat().st_size} bytes, and {self.list_file.name} says {shard.nbytes}"
                raise ModelError(why, hint=DOWNLOAD_AGAIN)
        return listed

    def files(self) -> dict[str, Path]:
        """Return the files that the device needs, by the name that they have there."""
        return {
            WEIGHT_LIST: self.list_file,
            **{shard.dataPath: self.place / shard.dataPath for shard in self.listed.records},
        }

    @cached_property
    def key(self) -> str:
        """Hash of the weights."""
        return key_of({name: sha256_of(file) for name, file in self.files().items()})


_MODULES = {
    **MODULES,
    "qkv": ["model.layers.{}.self_attn.qkv_proj", "model.layers.{}.self_attn.c_attn"],
    "gate_up": ["model.layers.{}.mlp.gate_up_proj"],
}
"""mlc-llm's names of the module that has a weight of ours; the second is that of Qwen."""


@dataclass(frozen=True)
class MlcWeights(ModelWeights):
    """The numbers that a library computes with. Raises ModelError for one that is not there."""

    folder: MlcFolder

    def require_complete(self) -> None:
        """Raise ModelError unless every weight is there, with as many numbers as the settings say."""
        for name, shape in self.config.shapes.items():
            weight = self._find(name)
            count = weight.count if weight else 0
            if count != math.prod(shape):
                why = f"{name} has {count} numbers, and by {SETTINGS} it has {math.prod(shape)}"
                raise ModelError(f"{self.folder.place}: {why}", hint="convert the weights again")

    def tensor(self, name: str) -> Array:
        """Return a weight as float32."""
        try:
            return self._tensor(name)
        except (KeyError, ValueError, TypeError, MemoryError) as error:
            raise ModelError(f"{self.folder.list_file} has no numbers for {name}", hint=_HINT) from error

    def _find(self, name: str) -> StoredWeight | None:
        kind, stored = name.rsplit(".", maxsplit=1)[-1], self.folder.weights
        names = (f"{module}.{prefix}{kind}" for module in modules_of(name, _MODULES) for prefix in ("", "q_"))
        return next((stored[theirs] for theirs in names if theirs in stored), None)

    def _tensor(self, name: str) -> Array:
        import numpy as np

        if (weight := self._find(name)) is None:
            raise KeyError(name)
        module, kind = weight.name.rsplit(".", 1)
        if not kind.startswith("q_"):
            return self._read(weight.name).astype(np.float32)
        words, scale = self._read(weight.name), self._read(f"{module}.q_scale")
        transposed = self.folder.settings.quantization.endswith("_0") and name != "embed.weight"
        return unpack(words.T, scale.T) if transposed else unpack(words, scale)

    def _read(self, name: str) -> Array:
        weight, file = self.folder.weights[name], self.folder.place / self.folder.shards[name]
        halved = weight.format == HALVED and weight.dtype == "float32"
        return StoredTensor(file, "bfloat16" if halved else weight.dtype, weight.shape, weight.byteOffset).read()
