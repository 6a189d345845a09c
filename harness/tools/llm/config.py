"""The shape of a Llama-style decoder, read from the `config.json` that Hugging Face keeps beside its weights.

A configuration that asks for more than this network has (norms of queries, experts, windows) is refused by name: a
network that leaves something out would be timed and judged as if it were the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import AliasChoices, ConfigDict, Field, TypeAdapter

from harness.base.failures import ModelError
from harness.tools.llm.foreign import Foreign, read_foreign

T = TypeVar("T")
FAMILIES = ("llama", "mistral", "qwen2", "qwen3")
"""`model_type` of networks that are this one."""
BIASED_FAMILY = "qwen2"
"""The family whose queries, keys and values have biases though its configuration has no field for that."""
NORMED_FAMILY = "qwen3"
"""The family that norms each head of queries and keys, of which its configuration says nothing either."""
UNSCALED = "default"
STRETCHES = (UNSCALED, "llama3")
"""Types of rotary positions."""
CONTEXT = 2048
"""Tokens that the cache of keys and values has room for."""


@dataclass(frozen=True)
class RopeScaling:
    """Llama 3's stretch of slow rotations (`rope_type: llama3`)."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int


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


class _Scaling(Foreign):
    kind: str = Field(UNSCALED, validation_alias=AliasChoices("rope_type", "type"))
    """Its name, of which older configurations have another key."""
    rope_theta: float | None = Field(None, gt=0, le=1e12)
    factor: float = Field(1.0, gt=0, le=1e6)
    low_freq_factor: float = Field(1.0, gt=0, le=1e6)
    high_freq_factor: float = Field(4.0, gt=0, le=1e6)
    original_max_position_embeddings: int = Field(8192, gt=0, le=1 << 30)

    @property
    def stretch(self) -> RopeScaling | None:
        return None if self.kind == UNSCALED else read_plain(RopeScaling, self.model_dump())


_OTHERS = (
    "num_local_experts", "num_experts", "partial_rotary_factor", "attn_logit_softcapping", "mlp_bias",
    "quantization_config",
)  # fmt: skip
"""Fields that make another network of it, or other weights, where they have a value."""


class ConfigFile(Foreign):
    """The fields of `config.json` that decide the network. Others are about training or text."""

    model_config = ConfigDict(extra="allow")

    model_type: str
    hidden_act: Literal["silu"] = "silu"
    num_hidden_layers: int = Field(gt=0, le=512)
    hidden_size: int = Field(gt=0, le=65_536)
    num_attention_heads: int = Field(gt=0, le=1024)
    num_key_value_heads: int | None = Field(None, gt=0, le=1024)
    head_dim: int | None = Field(None, gt=0, le=1024)
    intermediate_size: int = Field(gt=0, le=1 << 20)
    vocab_size: int = Field(gt=0, le=1 << 22)
    rope_theta: float = Field(
        10_000.0, gt=0, le=1e12, validation_alias=AliasChoices("position_embedding_base", "rope_theta")
    )
    """mlc-llm has another key for it."""
    rope_scaling: _Scaling | None = None
    rope_parameters: _Scaling | None = None
    rms_norm_eps: float = Field(1e-6, gt=0, lt=1)
    attention_bias: bool = False
    tie_word_embeddings: bool = False
    sliding_window: int | None = None
    use_sliding_window: bool = True

    @property
    def scaling(self) -> _Scaling:
        """The stretch of rotations, of which newer configurations have another key."""
        return self.rope_scaling or self.rope_parameters or _Scaling()

    @property
    def network(self) -> LlmConfig:
        """The network, if there is no `complaint`."""
        heads, biased = self.num_attention_heads, self.model_type == BIASED_FAMILY
        parameters = self.rope_parameters or _Scaling()
        return LlmConfig(
            layers=self.num_hidden_layers,
            hidden=self.hidden_size,
            heads=heads,
            kv_heads=self.num_key_value_heads or heads,
            head_dim=self.head_dim or self.hidden_size // heads,
            intermediate=self.intermediate_size,
            vocabulary=self.vocab_size,
            rope_theta=parameters.rope_theta or self.rope_theta,
            eps=self.rms_norm_eps,
            qkv_bias=biased or self.attention_bias,
            output_bias=self.attention_bias and not biased,
            head_norms=self.model_type == NORMED_FAMILY,
            tied=self.tie_word_embeddings,
            scaling=self.scaling.stretch,
        )

    @property
    def complaint(self) -> str:
        """What our network has not; empty if it has all."""
        heads = self.num_attention_heads
        kv_heads, head_dim = self.num_key_value_heads or heads, self.head_dim or self.hidden_size / heads
        window = self.sliding_window if self.use_sliding_window else None
        other = next((name for name in _OTHERS if getattr(self, name, None)), "")
        complaints = {
            f"model_type {self.model_type!r} is not supported": self.model_type not in FAMILIES,
            f"{other} is not supported": bool(other),
            f"rotary positions of type {self.scaling.kind!r} are not supported": self.scaling.kind not in STRETCHES,
            f"a sliding window of {window} tokens is not supported": window is not None and window < CONTEXT,
            f"{heads} heads cannot share {kv_heads} heads of keys and values": heads % kv_heads > 0,
            f"a hidden size of {self.hidden_size} cannot be cut into {heads} heads of an even size": head_dim % 2 > 0,
        }
        return next((text for text, holds in complaints.items() if holds), "")


_ORIGINALS = (
    "give the config.json of a Llama-style model; `python -m tf2onnx.convert --tfjs FILE --output FILE.onnx` converts "
    "one of TensorFlow.js"
)


def read_config(file: Path) -> LlmConfig:
    """Return the network of a `config.json`. Raises ModelError, also for a network that this one is not."""
    fields = read_foreign(file, ConfigFile, _ORIGINALS)
    if fields.complaint:
        usual = f"with all of their usual parts and positions {' or '.join(STRETCHES)}"
        raise ModelError(f"{file}: {fields.complaint}", hint=f"take a network of {', '.join(FAMILIES)}, {usual}")
    return fields.network
