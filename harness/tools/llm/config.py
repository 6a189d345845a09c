"""The shape of a Llama-style decoder, read from the `config.json` that Hugging Face keeps beside its weights.

A configuration that asks for more than this network has (experts, windows, soft caps) is refused by name: a network
that leaves something out would be timed and judged as if it were the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AliasChoices, BeforeValidator, ConfigDict, Field, TypeAdapter, model_validator
from typing_extensions import Self

from harness.tools.llm.foreign import Foreign, read_foreign

T = TypeVar("T")
CONTEXT = 2048
"""Tokens that the cache of keys and values has room for."""


@dataclass(frozen=True)
class RopeScaling:
    """Llama 3's stretch of slow rotations (`rope_type: llama3`)."""

    factor: Annotated[float, Field(gt=0, le=1e6)]
    low_freq_factor: Annotated[float, Field(gt=0, le=1e6)]
    high_freq_factor: Annotated[float, Field(gt=0, le=1e6)]
    original_max_position_embeddings: Annotated[int, Field(gt=0, le=1 << 30)]

    def __post_init__(self) -> None:
        if self.low_freq_factor >= self.high_freq_factor:
            raise ValueError("high_freq_factor has to be larger than low_freq_factor")


@dataclass(frozen=True)
class LlmConfig:
    """The shape of a decoder: grouped-query attention, rotary positions, RMSNorm, SwiGLU."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    rope_theta: float = 10_000.0
    eps: float = 1e-5
    qkv_bias: bool = False
    output_bias: bool = False
    """Whether attention's last product has a bias."""
    head_norms: bool = False
    """Whether each head of queries and keys is normed before it is rotated."""
    tied: bool = False
    """Whether the head is the table of embeddings."""
    scaling: RopeScaling | None = None
    positions: int = CONTEXT
    """Tokens of the longest text that it is made for."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each weight by its name, matrices as (outputs, inputs), in the order of the library's parameters."""
        shapes: dict[str, tuple[int, ...]] = {"embed.weight": (self.vocabulary, self.hidden)}
        for layer in range(self.layers):
            shapes.update({f"layers.{layer}.{name}": shape for name, shape in self.layer_shapes.items()})
        shapes["norm.weight"] = (self.hidden,)
        return shapes if self.tied else {**shapes, "head.weight": (self.vocabulary, self.hidden)}

    @property
    def layer_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each weight of a layer."""
        attention, rows = self.heads * self.head_dim, (self.heads + 2 * self.kv_heads) * self.head_dim
        return {
            "norm1.weight": (self.hidden,),
            "qkv.weight": (rows, self.hidden),
            **({"qkv.bias": (rows,)} if self.qkv_bias else {}),
            **(dict.fromkeys(("q_norm.weight", "k_norm.weight"), (self.head_dim,)) if self.head_norms else {}),
            "o.weight": (self.hidden, attention),
            **({"o.bias": (self.hidden,)} if self.output_bias else {}),
            "norm2.weight": (self.hidden,),
            "gate_up.weight": (2 * self.intermediate, self.hidden),
            "down.weight": (self.hidden, self.intermediate),
        }

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def cache_bytes(self, number_bytes: int) -> list[int]:
        """Return the size of the buffer of each layer in a cache for `CONTEXT` tokens."""
        return [2 * self.kv_heads * self.head_dim * CONTEXT * number_bytes] * self.layers


def read_plain(kind: type[T], fields: Mapping[str, Any]) -> T:
    """Return data of this kind: the inverse of `dataclasses.asdict`."""
    return TypeAdapter(kind).validate_python(fields)


LLAMA_TINY = LlmConfig(2, 256, 4, 2, 64, 512, 1024)
"""Two layers, for tests and a first look."""
ZOO = {"llama_tiny": LLAMA_TINY}


_ADDITIONS = (
    "num_local_experts", "num_experts", "n_routed_experts", "num_experts_per_tok", "kv_lora_rank", "clip_qkv",
    "query_pre_attn_scalar", "attention_multiplier", "attn_logit_softcapping", "final_logit_softcapping", "use_qk_norm",
    "qk_norm", "qk_layernorm", "use_bidirectional_attention", "attention_chunk_size", "attn_temperature_tuning",
    "alibi", "full_attention", "sliding_attention", "llama_4_scaling_beta", "rope_interleaved", "rope_interleave",
    "no_rope_layers", "mlp_bias", "bias", "use_bias", "use_qkv_bias", "lm_head_bias", "use_parallel_residual",
    "parallel_attn", "num_kv_shared_layers", "quantization_config", "quantization", "compression_config", "weight_bits",
    "auto_map", "per_layer_config", "block_configs",
)  # fmt: skip
_FACTORS = (
    "partial_rotary_factor", "rotary_pct", "rope_pct", "scale_emb", "embedding_multiplier", "residual_multiplier",
    "lm_head_multiplier", "logits_scaling", "logit_scale",
)  # fmt: skip
"""Fields of other networks and other weights: in one like this they are 0, false or empty, and the latter may be 1."""


class _PlainNetwork(Foreign):
    """What others wrote, without fields that make another network of it, or other weights."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="after")
    def _has_none_of_others(self) -> Self:
        others = self.model_extra or {}
        names = (*_ADDITIONS, *(name for name in _FACTORS if others.get(name) != 1))
        if strange := next((name for name in names if others.get(name)), ""):
            raise ValueError(f"{strange} is not supported")
        return self


@dataclass(frozen=True)
class _Family:
    """What `config.json` leaves to a family's classes (transformers 5.24, `configuration_*.py`, `modeling_*.py`)."""

    sizes: tuple[str, ...] = ("num_key_value_heads",)
    """Fields that must be there: without them, transformers has numbers of its own."""
    biased: bool = False
    """Whether queries, keys and values have biases whatever `attention_bias` says."""
    reads_bias: bool = False
    head_norms: bool = False
    switches_window: bool = False
    """Whether the sliding window counts only with `use_sliding_window`."""


_FAMILIES = {
    "llama": _Family(sizes=(), reads_bias=True),
    "mistral": _Family(),
    "qwen2": _Family(biased=True, switches_window=True),
    "qwen3": _Family(("num_key_value_heads", "head_dim"), reads_bias=True, head_norms=True, switches_window=True),
}


class _Rotation(_PlainNetwork):
    kind: Literal["default", "llama3"] = Field("default", validation_alias=AliasChoices("rope_type", "type"))
    """Its name, of which older configurations have another key."""
    rope_theta: float | None = Field(None, gt=0, le=1e12)
    llama3: RopeScaling | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_llama3(cls, fields: Any) -> Any:
        if not isinstance(fields, dict):
            return fields
        is_llama3 = fields.get("rope_type", fields.get("type")) == "llama3"
        return {**fields, "llama3": fields if is_llama3 else None}


_MaybeRotation = Annotated[_Rotation | None, BeforeValidator(lambda fields: fields or None)]
"""An empty one says nothing, as in transformers."""


class ConfigFile(_PlainNetwork):
    """The fields of `config.json` that decide the network. Others are about training or text."""

    model_type: Literal["llama", "mistral", "qwen2", "qwen3"]
    hidden_act: Literal["silu"] = "silu"
    is_causal: Literal[True] = True
    num_hidden_layers: int = Field(gt=0, le=512)
    hidden_size: int = Field(gt=0, le=65_536)
    num_attention_heads: int = Field(gt=0, le=1024)
    num_key_value_heads: int | None = Field(None, gt=0, le=1024)
    head_dim: int | None = Field(None, gt=0, le=1024)
    intermediate_size: int = Field(gt=0, le=1 << 20)
    vocab_size: int = Field(gt=1, le=1 << 22)
    max_position_embeddings: int = Field(CONTEXT, gt=0, le=1 << 30)
    original_max_position_embeddings: int | None = None
    """In transformers 5, goes before what the rotation says."""
    rope_theta: float = Field(
        10_000.0, gt=0, le=1e12, validation_alias=AliasChoices("position_embedding_base", "rope_theta")
    )
    """mlc-llm has another key for it."""
    rope_scaling: _MaybeRotation = None
    rope_parameters: _MaybeRotation = None
    """The same, of newer configurations."""
    layer_types: tuple[Literal["full_attention", "sliding_attention"], ...] | None = None
    rms_norm_eps: float = Field(1e-6, gt=0, lt=1)
    attention_bias: bool = False
    tie_word_embeddings: bool = False
    sliding_window: int | None = None
    use_sliding_window: bool = False

    @property
    def rotations(self) -> set[tuple[float, RopeScaling | None]]:
        """Base and stretch of each rotation that it names: of a network that is ours there is one."""
        fields = [rotation for rotation in (self.rope_scaling, self.rope_parameters) if rotation]
        return {(rotation.rope_theta or self.rope_theta, rotation.llama3) for rotation in fields or [_Rotation()]}

    @property
    def network(self) -> LlmConfig:
        """The network."""
        heads, family = self.num_attention_heads, _FAMILIES[self.model_type]
        rope_theta, scaling = next(iter(self.rotations))
        output_bias = family.reads_bias and self.attention_bias
        return LlmConfig(
            layers=self.num_hidden_layers,
            hidden=self.hidden_size,
            heads=heads,
            kv_heads=self.num_key_value_heads or heads,
            head_dim=self.head_dim or self.hidden_size // heads,
            intermediate=self.intermediate_size,
            vocabulary=self.vocab_size,
            rope_theta=rope_theta,
            eps=self.rms_norm_eps,
            qkv_bias=family.biased or output_bias,
            output_bias=output_bias,
            head_norms=family.head_norms,
            tied=self.tie_word_embeddings,
            scaling=scaling,
            positions=self.max_position_embeddings,
        )

    @model_validator(mode="after")
    def _is_this_network(self) -> Self:
        family, network, outside = _FAMILIES[self.model_type], self.network, self.original_max_position_embeddings
        heads, kv_heads, head_dim = network.heads, network.kv_heads, self.head_dim or self.hidden_size / network.heads
        missing = [name for name in family.sizes if name not in self.model_fields_set]
        window = self.sliding_window if self.use_sliding_window or not family.switches_window else None
        complaints = {
            f"it has no {' and no '.join(missing)}": bool(missing),
            f"attention_bias: transformers builds a {self.model_type} without biases": self.attention_bias
            and not network.qkv_bias,
            f"a sliding window of {window} tokens is not supported": window is not None and window < CONTEXT,
            "rope_scaling and rope_parameters are two different rotations": len(self.rotations) > 1,
            "original_max_position_embeddings is not that of the rotation": network.scaling is not None
            and outside not in {None, network.scaling.original_max_position_embeddings},
            f"{heads} heads cannot share {kv_heads} heads of keys and values": heads % kv_heads > 0,
            f"a hidden size of {self.hidden_size} cannot be cut into {heads} heads of an even size": head_dim % 2 > 0,
        }
        if complaint := next((text for text, holds in complaints.items() if holds), ""):
            raise ValueError(complaint)
        return self


_HINT = "correct it or download it again; for another kind of network, let mlc-llm compile it and give --library"
_OTHER_JSON = (
    "give the config.json of a language model; "
    "`python -m tf2onnx.convert --tfjs FILE --output FILE.onnx` converts a model of TensorFlow.js"
)


def read_config(file: Path) -> LlmConfig:
    """Return the network of a `config.json`. Raises ModelError, also for a network that this one is not."""
    return read_foreign(file, ConfigFile, _HINT if file.name == "config.json" else _OTHER_JSON).network
