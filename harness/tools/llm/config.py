"""The shape of a Llama-style decoder, read from the `config.json` that Hugging Face keeps beside its weights.

A configuration that asks for more than this network has (norms of queries, experts, windows) is refused by name: a
network that leaves something out would be timed and judged as if it were the model.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from device_runner.foreign_json import read_json
from harness.base.failures import ModelError, reason_alone

LONGEST_FILE_BYTES = 1 << 20
FAMILIES = ("llama", "mistral", "qwen2")
"""`model_type` of networks that are this one."""
BIASED_FAMILY = "qwen2"
"""The family whose queries, keys and values have biases though its configuration has no field for that."""
CONTEXT = 2048
"""Tokens that the cache of keys and values has room for."""
_OTHERS = ("num_local_experts", "num_experts", "partial_rotary_factor", "attn_logit_softcapping", "mlp_bias")
"""Fields that make another network of it where they have a value."""


@dataclass(frozen=True)
class RopeScaling:
    """Llama 3's stretch of slow rotations (`rope_type: llama3`)."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_max_position_embeddings: int

    @property
    def fields(self) -> dict[str, Any]:
        """The fields as TVM's cache takes them."""
        return {"rope_type": "llama3", **asdict(self)}


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
    tied: bool = False
    """Whether the head is the table of embeddings."""
    scaling: RopeScaling | None = None

    @property
    def qkv_rows(self) -> int:
        """Rows of the product that makes queries, keys and values."""
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shape of each weight by its name, matrices as (outputs, inputs), in the order of the library's parameters."""
        shapes: dict[str, tuple[int, ...]] = {"embed.weight": (self.vocabulary, self.hidden)}
        for layer in range(self.layers):
            shapes.update({f"layers.{layer}.{name}": shape for name, shape in self._layer_shapes.items()})
        shapes["norm.weight"] = (self.hidden,)
        return shapes if self.tied else {**shapes, "head.weight": (self.vocabulary, self.hidden)}

    @property
    def _layer_shapes(self) -> dict[str, tuple[int, ...]]:
        attention = self.heads * self.head_dim
        shapes: dict[str, tuple[int, ...]] = {
            "norm1.weight": (self.hidden,),
            "qkv.weight": (self.qkv_rows, self.hidden),
            **({"qkv.bias": (self.qkv_rows,)} if self.qkv_bias else {}),
            "o.weight": (self.hidden, attention),
            **({"o.bias": (self.hidden,)} if self.output_bias else {}),
            "norm2.weight": (self.hidden,),
            "gate_up.weight": (2 * self.intermediate, self.hidden),
            "down.weight": (self.hidden, self.intermediate),
        }
        return shapes

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    def cache_bytes(self, number_bytes: int) -> list[int]:
        """Return the size of the buffer of each layer in a cache for `CONTEXT` tokens."""
        return [2 * self.kv_heads * self.head_dim * CONTEXT * number_bytes] * self.layers

    @property
    def plain(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)

    @classmethod
    def of_plain(cls, fields: dict[str, Any]) -> LlmConfig:
        """Inverse of `plain`."""
        scaling = fields.get("scaling")
        return cls(**{**fields, "scaling": RopeScaling(**scaling) if scaling else None})


LLAMA_TINY = LlmConfig(2, 256, 4, 2, 64, 512, 1024)
"""Two layers, for tests and a first look."""
ZOO = {"llama_tiny": LLAMA_TINY}


class _Fields(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Scaling(_Fields):
    rope_type: str = ""
    type: str = ""
    factor: float = Field(1.0, gt=0, le=1e6)
    low_freq_factor: float = Field(1.0, gt=0, le=1e6)
    high_freq_factor: float = Field(4.0, gt=0, le=1e6)
    original_max_position_embeddings: int = Field(8192, gt=0, le=1 << 30)

    @property
    def made(self) -> RopeScaling | None:
        """The stretch, None without one. Raises ModelError for another."""
        kind = self.rope_type or self.type
        if kind in ("", "default"):
            return None
        if kind != "llama3":
            raise ModelError(f"rotary positions of type {kind!r} are not supported", hint="supported: default, llama3")
        return RopeScaling(**self.model_dump(exclude={"rope_type", "type"}))


class _ConfigFile(_Fields):
    """The fields of `config.json` that decide the network. Others are about training or text."""

    model_type: str
    hidden_act: Literal["silu"] = "silu"
    num_hidden_layers: int = Field(gt=0, le=512)
    hidden_size: int = Field(gt=0, le=65_536)
    num_attention_heads: int = Field(gt=0, le=1024)
    num_key_value_heads: int | None = Field(None, gt=0, le=1024)
    head_dim: int | None = Field(None, gt=0, le=1024)
    intermediate_size: int = Field(gt=0, le=1 << 20)
    vocab_size: int = Field(gt=0, le=1 << 22)
    rope_theta: float = Field(10_000.0, gt=0, le=1e12)
    rope_scaling: _Scaling | None = None
    rope_parameters: _Scaling | None = None
    rms_norm_eps: float = Field(1e-6, gt=0, lt=1)
    attention_bias: bool = False
    tie_word_embeddings: bool = False
    sliding_window: int | None = None
    use_sliding_window: bool = True


def read_config(file: Path) -> LlmConfig:
    """Return the network of a `config.json`. Raises ModelError, also for a network that this one is not."""
    try:
        with file.open("rb") as stream:
            text = stream.read(LONGEST_FILE_BYTES + 1)
        if len(text) > LONGEST_FILE_BYTES:
            raise ValueError(f"more than {LONGEST_FILE_BYTES >> 20} MiB")
        fields = read_json(text)
        if not isinstance(fields, dict):
            raise TypeError("not an object")
        return config_of(fields)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        raise ModelError(f"{file} is no configuration of such a network: {where}: {problem['msg']}") from error
    except (OSError, ValueError, TypeError) as error:
        raise ModelError(
            f"cannot read {file}: {reason_alone(error)}", hint="give the config.json of a Llama-style model"
        ) from error


def config_of(fields: dict[str, Any]) -> LlmConfig:
    """Return the network that these fields describe. Raises ModelError, ValidationError."""
    parameters = fields.get("rope_parameters")
    theta = parameters.get("rope_theta") if isinstance(parameters, dict) else None
    file = _ConfigFile.model_validate({**fields, **({"rope_theta": theta} if theta else {})})
    heads, biased, scaling = file.num_attention_heads, file.model_type == BIASED_FAMILY, file.rope_scaling
    if complaint := _complaint(file, fields):
        raise ModelError(complaint, hint=f"supported: {', '.join(FAMILIES)}, with all of their usual parts")
    return LlmConfig(
        layers=file.num_hidden_layers,
        hidden=file.hidden_size,
        heads=heads,
        kv_heads=file.num_key_value_heads or heads,
        head_dim=file.head_dim or file.hidden_size // heads,
        intermediate=file.intermediate_size,
        vocabulary=file.vocab_size,
        rope_theta=file.rope_theta,
        eps=file.rms_norm_eps,
        qkv_bias=biased or file.attention_bias,
        output_bias=file.attention_bias and not biased,
        tied=file.tie_word_embeddings,
        scaling=(scaling or file.rope_parameters or _Scaling()).made,
    )


def _complaint(file: _ConfigFile, fields: dict[str, Any]) -> str:
    """Return what this network has not; empty if it has all."""
    heads = file.num_attention_heads
    kv_heads, head_dim = file.num_key_value_heads or heads, file.head_dim or file.hidden_size / heads
    windowed = file.sliding_window is not None and file.use_sliding_window
    other = next((name for name in _OTHERS if fields.get(name)), "")
    complaints = {
        f"model_type {file.model_type!r} is not supported": file.model_type not in FAMILIES,
        f"{other} is not supported": bool(other),
        f"a sliding window of {file.sliding_window} tokens is not supported": windowed
        and (file.sliding_window or 0) < CONTEXT,
        f"{heads} heads cannot share {kv_heads} heads of keys and values": heads % kv_heads > 0,
        f"a hidden size of {file.hidden_size} cannot be cut into {heads} heads of an even size": head_dim % 2 > 0,
    }
    return next((text for text, holds in complaints.items() if holds), "")
