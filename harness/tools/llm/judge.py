"""The truth about a decoder: numpy in float64, without a cache. It computes all tokens anew and knows no pages."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.tools.llm.config import LlmConfig
from harness.tools.llm.weights import row_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from device_runner.device import Array

    Move = Callable[[Any], Any]

NAME = "numpy float64"


@dataclass(frozen=True)
class ReferenceAnswer:
    """What a network makes of a text, at every position."""

    logits: Any
    """(positions, vocabulary)"""
    hidden: Any
    """What leaves each layer: (layers, positions, hidden)."""


def frequencies(config: LlmConfig) -> Any:
    """Return the angle by which each pair of a head turns from one position to the next."""
    turns = 1.0 / config.rope_theta ** (np.arange(0, config.head_dim, 2) / config.head_dim)
    if (scaling := config.scaling) is None:
        return turns
    # transformers, modeling_rope_utils.py: _compute_llama3_parameters
    waves = scaling.original_max_position_embeddings * turns / (2 * math.pi)
    share = (waves - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    share = np.clip(share, 0.0, 1.0)
    return (1 - share) * turns / scaling.factor + share * turns


def compute(
    config: LlmConfig,
    tensor: Callable[[str], Array],
    tokens: Array,
    moves: Sequence[Move] = (),
    angle_share: float = 0.0,
) -> Iterator[ReferenceAnswer]:
    """Compute a text as it is, and once more with each of `moves` applied to every weight and result.

    The moved ones show how far rounding moves the answer; angles of rotations are moved by `angle_share` of that. All
    take a layer before any takes the next one, so that each weight is made once: of a network of a billion numbers,
    making them takes longer than the arithmetic.
    """
    cached = functools.cache(tensor)
    networks = [_Arithmetic(config, cached, move, len(tokens), angle_share) for move in (lambda array: array, *moves)]
    states = [network.embed(tokens) for network in networks]
    hidden: list[list[Any]] = [[] for _ in networks]
    for layer in range(config.layers):
        cached.cache_clear()
        states = [network.layer(x, f"layers.{layer}.") for network, x in zip(networks, states, strict=True)]
        for layers, x in zip(hidden, states, strict=True):
            layers.append(x)
    cached.cache_clear()
    for network, x, layers in zip(networks, states, hidden, strict=True):
        yield ReferenceAnswer(network.logits(x), np.stack(layers))


class _Arithmetic:
    """The arithmetic of a network."""

    def __init__(
        self, config: LlmConfig, tensor: Callable[[str], Array], move: Move, count: int, angle_share: float
    ) -> None:
        self._config, self._tensor, self._move = config, tensor, move
        angles = np.arange(count)[:, None] * frequencies(config)
        angles = angles + angle_share * (move(angles) - angles)
        self._cos, self._sin = (f(np.concatenate([angles, angles], -1))[:, None] for f in (np.cos, np.sin))
        self._mask = np.triu(np.full((count, count), -np.inf), 1)

    def weight(self, name: str) -> Any:
        """Return a weight in float64."""
        return self._move(self._tensor(name).astype("float64"))

    def embed(self, tokens: Array) -> Any:
        """Return the rows of the table of embeddings."""
        return self._move(self._tensor("embed.weight")[tokens].astype("float64"))

    def norm(self, x: Any, name: str) -> Any:
        return self._move(x / np.sqrt((x * x).mean(-1, keepdims=True) + self._config.eps) * self.weight(name))

    def linear(self, x: Any, name: str, *, bias: bool = False) -> Any:
        product = x @ self.weight(f"{name}.weight").T
        return self._move(product + self.weight(f"{name}.bias") if bias else product)

    def logits(self, x: Any) -> Any:
        """Return the logits of what leaves the last layer."""
        x, head = self.norm(x, "norm.weight"), "embed.weight" if self._config.tied else "head.weight"
        blocks = (self._move(block.astype("float64")) for block in row_blocks(self._tensor(head)))
        return self._move(np.concatenate([x @ block.T for block in blocks], -1))

    def layer(self, x: Any, prefix: str) -> Any:
        """Return what leaves a layer."""
        c = self._config
        mixed = self._attend(self.linear(self.norm(x, prefix + "norm1.weight"), prefix + "qkv", bias=c.qkv_bias))
        x = self._move(x + self.linear(mixed, prefix + "o", bias=c.output_bias))
        gate, up = np.split(self.linear(self.norm(x, prefix + "norm2.weight"), prefix + "gate_up"), 2, -1)
        return self._move(x + self.linear(self._move(gate / (1 + np.exp(-gate)) * up), prefix + "down"))

    def _attend(self, qkv: Any) -> Any:
        c, count = self._config, len(qkv)
        parts: list[Any] = np.split(qkv.reshape(count, -1, c.head_dim), [c.heads, c.heads + c.kv_heads], 1)
        q, k, v = self._turn(parts[0]), self._turn(parts[1]), parts[2]
        k, v = (array.repeat(c.heads // c.kv_heads, 1) for array in (k, v))
        scores = self._move(np.einsum("qhd,khd->hqk", q, k) / math.sqrt(c.head_dim)) + self._mask
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares = self._move(shares / shares.sum(-1, keepdims=True))
        return self._move(np.einsum("hqk,khd->qhd", shares, v).reshape(count, -1))

    def _turn(self, x: Any) -> Any:
        half = self._config.head_dim // 2
        return self._move(x * self._cos + np.concatenate([-x[..., half:], x[..., :half]], -1) * self._sin)


def divergence(logits: Array, truth: Array) -> float:
    """Return the mean KL divergence, in nats, of the distributions of next tokens from the truth's."""
    want, got = (_log_shares(array.astype(np.float64)) for array in (truth, logits))
    return float((np.exp(want) * (want - got)).sum(-1).mean())


def _log_shares(logits: Any) -> Any:
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
