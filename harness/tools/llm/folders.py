"""Folders of weights: Hugging Face's, with safetensors, and those that mlc-llm wrote. Nothing in them is executed.

Sources: https://huggingface.co/docs/safetensors, "Format"; mlc-llm, interface/gen_config.py (settings),
quantization/group_quantization.py and model/*/*_model.py (names); tvm/contrib/tvmjs.py (the list of weights). Every
name, size and offset is checked before it is used.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasPath, Field, TypeAdapter, ValidationError

from device_runner.device import Array
from device_runner.store import key_of, sha256_of
from harness.base.failures import ModelError, reason_alone
from harness.tools.llm.config import ConfigFile, LlmConfig
from harness.tools.llm.foreign import DOWNLOAD_AGAIN, Foreign, StoredTensor, file_beside, read_foreign, read_object
from harness.tools.llm.weights import NUMBER_BYTES, PER_WORD, SEED, ModelWeights, SeededWeights, unpack

INDEX, USUAL = "model.safetensors.index.json", "model.safetensors"
LONGEST_HEADER_BYTES = 100_000_000
"""Limit of the format's own reader."""
OTHER_WEIGHTS = "give the config.json that belongs to these weights"
_NUMBERS = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
"""Number format of each kind that can be read."""
_LENGTH_BYTES = 8
_Whole = Annotated[int, Field(strict=True, ge=0)]
_HEAD = "lm_head.weight"
_ROTATIONS = ".rotary_emb.inv_freq"
"""End of the names of tables of rotations, which older folders have."""
_MODULES = {
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
_MLC_MODULES = {
    **_MODULES,
    "qkv": ["model.layers.{}.self_attn.qkv_proj", "model.layers.{}.self_attn.c_attn"],
    "gate_up": ["model.layers.{}.mlp.gate_up_proj"],
}
"""mlc-llm's names of the module that has a weight of ours; the second is that of Qwen."""


def _modules_of(name: str, modules: Mapping[str, Sequence[str]]) -> list[str]:
    """Return others' names of the modules of a weight of ours, such as `layers.3.qkv.weight`."""
    *layer, part, _ = name.split(".")
    return [module.format(*layer[1:]) for module in modules[part]]


@functools.lru_cache(maxsize=8)
def weights_of(config: LlmConfig, place: str) -> ModelWeights:
    """Return the weights of a network: seeded, or of a folder of safetensors."""
    return SeededWeights(config) if place == SEED else FolderWeights(config, Path(place))


@dataclass(frozen=True)
class FolderWeights(ModelWeights):
    """Weights of a Hugging Face folder. Raises ModelError if one is missing or has another shape."""

    folder: Path

    @cached_property
    def _stored(self) -> dict[str, StoredTensor]:
        return list_tensors(self.folder)

    @cached_property
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
        unused = {name for name in self._stored if name not in parts and not name.endswith(_ROTATIONS)}
        if self.config.tied and _HEAD in unused:
            self._require_tied()
            unused.remove(_HEAD)
        if unused:
            raise ModelError(f"{self.folder} has {min(unused)}, of which config.json says nothing", hint=OTHER_WEIGHTS)

    def _require_tied(self) -> None:
        """Raise ModelError for a head of its own: transformers 5 computes with it, and transformers 4 does not."""
        import numpy as np

        if not np.array_equal(
            self._find(_HEAD, self.config.shapes["embed.weight"]).read(), self.tensor("embed.weight")
        ):
            why = f"{_HEAD} is not the table of embeddings, though tie_word_embeddings is true"
            raise ModelError(f"{self.folder}: {why}", hint="set it to false, or remove the head")

    def _find(self, name: str, shape: tuple[int, ...]) -> StoredTensor:
        """Return a tensor. Raises ModelError unless it is a floating-point one of this shape."""
        stored = self._stored.get(name)
        if stored is None:
            raise ModelError(f"{self.folder} has no tensor {name}", hint=OTHER_WEIGHTS)
        if stored.dtype not in _NUMBERS.values():
            raise ModelError(f"{name} in {stored.file} is {stored.dtype}", hint=f"supported: {', '.join(_NUMBERS)}")
        if stored.shape != shape:
            why = f"{name} in {stored.file} has shape {list(stored.shape)}, and config.json says {list(shape)}"
            raise ModelError(why, hint=OTHER_WEIGHTS)
        return stored

    def _parts(self, name: str) -> list[tuple[str, tuple[int, ...]]]:
        """Return Hugging Face's tensors that ours consists of, with their shapes."""
        config, shape = self.config, self.config.shapes[name]
        *_, part, kind = name.split(".")
        rows = [config.heads * config.head_dim, *[config.kv_heads * config.head_dim] * 2]
        split = {"qkv": rows, "gate_up": [config.intermediate] * 2}.get(part, [shape[0]])
        modules = _modules_of(name, _MODULES)
        return [(f"{module}.{kind}", (count, *shape[1:])) for module, count in zip(modules, split, strict=True)]


def list_tensors(folder: Path) -> dict[str, StoredTensor]:
    """Return the tensors of a Hugging Face folder by name. Raises ModelError."""
    tensors: dict[str, StoredTensor] = {}
    for file in _files(folder):
        try:
            more = _tensors_of(file)
        except (OSError, ValueError) as error:
            why = f"{file} is not a safetensors file, or not a whole one: {reason_alone(error)}"
            raise ModelError(why, hint=DOWNLOAD_AGAIN) from error
        if twice := tensors.keys() & more:
            name = min(twice)
            raise ModelError(f"{name} is in {tensors[name].file} and {file}", hint="leave one of the files there")
        tensors |= more
    return tensors


class _Index(Foreign):
    weight_map: dict[str, str] = Field(min_length=1)


def _files(folder: Path) -> list[Path]:
    """Return the usual file, as transformers does whatever an index says; else those that it names; else all."""
    if not folder.is_dir():
        raise ModelError(f"there is no folder {folder}", hint="`seed` draws weights")
    if (usual := folder / USUAL).is_file():
        return [usual]
    if (index := folder / INDEX).exists():
        names = read_foreign(index, _Index, DOWNLOAD_AGAIN).weight_map.values()
        return [file_beside(index, name) for name in sorted(set(names))]
    files = sorted(file for file in folder.glob("*.safetensors") if file.is_file())
    if not files:
        raise ModelError(f"{folder} has no *.safetensors", hint="pickled weights are not read: convert them first")
    return files


class _Entry(Foreign):
    dtype: str
    shape: tuple[_Whole, ...]
    data_offsets: tuple[_Whole, _Whole]


_HEADER = TypeAdapter(dict[str, _Entry])


def _tensors_of(file: Path) -> dict[str, StoredTensor]:
    size = file.stat().st_size
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
        base = _LENGTH_BYTES + length
        if length > LONGEST_HEADER_BYTES or base > size:
            raise ValueError(f"its header has {length} bytes, and the file {size}")
        header = read_object(stream.read(length))
    header.pop("__metadata__", None)
    entries = _HEADER.validate_python(header)
    _require_whole(entries, size - base)
    return {
        name: StoredTensor(file, _NUMBERS.get(entry.dtype, entry.dtype), entry.shape, base + entry.data_offsets[0])
        for name, entry in entries.items()
    }


def _require_whole(entries: dict[str, _Entry], size: int) -> None:
    """Raise ValueError unless the tensors lie one behind the other in this many bytes, as the format says."""
    place = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        begin, end = entry.data_offsets
        if end > size:
            raise ValueError(f"{name} ends at {end} bytes of numbers, and the file has {size}")
        wide = NUMBER_BYTES.get(_NUMBERS.get(entry.dtype, ""), 0)
        if begin != place or begin > end or (wide and end - begin != wide * math.prod(entry.shape)):
            raise ValueError(f"{name} of shape {list(entry.shape)} cannot lie at {begin} to {end}")
        place = end


SETTINGS, WEIGHT_LIST = "mlc-chat-config.json", "tensor-cache.json"
LISTS = (WEIGHT_LIST, "ndarray-cache.json")
"""Names of the list of weights: as TVM's loader wants it, and that of mlc-llm until 2025."""
READABLE_FORMAT = re.compile(r"q0f(16|32)|q4f(16|32)_[0-2]")
"""Number formats whose weights can be read: plain, or 4 bits in groups of 32."""
MOST_PARAMETERS = 2_000_000_000
"""Weights of the largest network that numpy judges: of more it would compute for hours."""
HALVED = "f32-to-bf16"
"""Word of the list for float32 numbers of which only the upper half is stored."""
_HINT = "give the folder that `mlc_llm convert_weight` and `gen_config` wrote"


class ModelSettings(Foreign):
    """What mlc-llm's folder of weights says of the model."""

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
        try:
            network = ConfigFile.model_validate({**self.shape, "model_type": self.model_type}).network
        except ValidationError:
            return None
        is_readable = READABLE_FORMAT.fullmatch(self.quantization) and network.parameters <= MOST_PARAMETERS
        return network if is_readable else None


class StoredWeight(Foreign):
    """A weight in the list."""

    name: str
    shape: tuple[_Whole, ...]
    dtype: str
    format: str = "raw"
    byteOffset: _Whole = 0


class Shard(Foreign):
    """A file of weights."""

    dataPath: str
    nbytes: _Whole
    records: tuple[StoredWeight, ...]


class WeightList(Foreign):
    """All weights of a folder."""

    all_bytes: float = Field(0.0, ge=0, le=1e15, validation_alias=AliasPath("metadata", "ParamBytes"))
    bits_each: float | None = Field(None, ge=1, le=64, validation_alias=AliasPath("metadata", "BitsPerParam"))
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
    def _listed(self) -> WeightList:
        """What the list says. Its files are as long as it says."""
        listed = read_foreign(self.list_file, WeightList, _HINT)
        for shard in listed.records:
            file = file_beside(self.list_file, shard.dataPath)
            if file.stat().st_size != shard.nbytes:
                why = f"{file} has {file.stat().st_size} bytes, and {self.list_file.name} says {shard.nbytes}"
                raise ModelError(why, hint=DOWNLOAD_AGAIN)
        return listed

    @cached_property
    def weights(self) -> dict[str, StoredTensor]:
        """Weights by name."""
        weights = {}
        for shard in self._listed.records:
            for entry in shard.records:
                place = self.place / shard.dataPath, entry.dtype, entry.shape, entry.byteOffset
                weights[entry.name] = StoredTensor(*place, entry.format == HALVED and entry.dtype == "float32")
        return weights

    @property
    def parameters(self) -> int:
        """Number of weights, as the converter says; else eight in each word, and no scales."""
        if bits := self._listed.bits_each:
            return round(8 * self._listed.all_bytes / bits)
        return sum(_count(weight) for name, weight in self.weights.items() if not name.endswith("_scale"))

    def files(self) -> dict[str, Path]:
        """Return the files that the device needs, by the name that they have there."""
        shards = {shard.dataPath: self.place / shard.dataPath for shard in self._listed.records}
        return {WEIGHT_LIST: self.list_file, **shards}

    @cached_property
    def key(self) -> str:
        """Hash of the weights."""
        return key_of({name: sha256_of(file) for name, file in self.files().items()})


def _count(weight: StoredTensor) -> int:
    """Return how many numbers a weight stands for."""
    return math.prod(weight.shape) * (PER_WORD if weight.dtype == "uint32" else 1)


@dataclass(frozen=True)
class MlcWeights(ModelWeights):
    """The numbers that a library of mlc-llm computes with. Raises ModelError for one that is not there."""

    folder: MlcFolder

    @property
    def key(self) -> str:
        """Hash of the files."""
        return self.folder.key

    def require_complete(self) -> None:
        """Raise ModelError unless every weight is there, with as many numbers as the settings say."""
        for name, shape in self.config.shapes.items():
            theirs = self._theirs(name)
            count = _count(self.folder.weights[theirs]) if theirs else 0
            if count != math.prod(shape):
                why = f"{name} has {count} numbers, and by {SETTINGS} it has {math.prod(shape)}"
                raise ModelError(f"{self.folder.place}: {why}", hint="convert the weights again")

    def tensor(self, name: str) -> Array:
        """Return a weight as float32."""
        theirs, stored = self._theirs(name), self.folder.weights
        try:
            numbers = stored[theirs].read()
            if not theirs.endswith(".q_weight"):
                return numbers.astype("float32")
            scale = stored[theirs.replace(".q_weight", ".q_scale")].read()
            transposed = self.folder.settings.quantization.endswith("_0") and name != "embed.weight"
            return unpack(numbers.T, scale.T) if transposed else unpack(numbers, scale)
        except (KeyError, ValueError, TypeError, MemoryError) as error:
            raise ModelError(f"{self.folder.list_file} has no numbers for {name}", hint=_HINT) from error

    def _theirs(self, name: str) -> str:
        """Return the name under which a weight of ours is stored; empty if it is not there."""
        kind = name.rpartition(".")[-1]
        names = (f"{module}.{prefix}{kind}" for module in _modules_of(name, _MLC_MODULES) for prefix in ("", "q_"))
        return next((theirs for theirs in names if theirs in self.folder.weights), "")
