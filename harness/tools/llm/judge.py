"""The truth about a decoder: numpy in float64, without a cache. It computes all tokens anew and knows no pages."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.tools.llm.config import LlmConfig
from harness.tools.llm.weights import Weights

if TYPE_CHECKING:
    from collections.abc import Callable

    from device_runner.device import Array

    Move = Callable[[Any], Any]

NAME = "numpy float64"


@dataclass(frozen=True)
class Reference:
    """What a network makes of a text, at every position."""

    logits: Any
    """(positions, vocabulary)"""
    hidden: Any
    """What leaves each layer: (layers, positions, hidden)."""


def frequencies(config: LlmConfig) -> Any:
    """Return the angle by which each pair of a head turns from one position to the next."""
    import numpy as np

    turns = 1.0 / config.rope_theta ** (np.arange(0, config.head_dim, 2) / config.head_dim)
    if (scaling := config.scaling) is None:
        return turns
    # transformers, modeling_rope_utils.py: _compute_llama3_parameters
    waves = scaling.original_max_position_embeddings * turns / (2 * math.pi)
    share = (waves - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    share = np.clip(share, 0.0, 1.0)
    return (1 - share) * turns / scaling.factor + share * turns


def compute(config: LlmConfig, weights: Weights, tokens: Array, move: Move | None = None) -> Reference:
    """Compute a text. `move` is applied to every weight and result, to learn how far rounding moves the answer."""
    import numpy as np

    move = move or _stay
    network = _Network(config, weights, move, len(tokens))
    x = move(network.weight("embed.weight"))[tokens]
    hidden = []
    for layer in range(config.layers):
        x = network.layer(x, f"layers.{layer}.")
        hidden.append(x)
    head = "embed.weight" if config.tied else "head.weight"
    logits = network.norm(x, "norm.weight") @ network.weight(head).T
    return Reference(move(logits), np.stack(hidden))


def _stay(array: Any) -> Any:
    return array


class _Network:
    """The arithmetic of a layer."""

    def __init__(self, config: LlmConfig, weights: Weights, move: Move, count: int) -> None:
        import numpy as np

        self._config, self._weights, self._move = config, weights, move
        angles = np.arange(count)[:, None] * frequencies(config)
        self._cos, self._sin = (f(np.concatenate([angles, angles], -1))[:, None] for f in (np.cos, np.sin))
        self._mask = np.triu(np.full((count, count), -np.inf), 1)

    def weight(self, name: str) -> Any:
        """Return a weight in float64."""
        return self._move(self._weights.tensor(name).astype("float64"))

    def norm(self, x: Any, name: str) -> Any:
        import numpy as np

        return self._move(x / np.sqrt((x * x).mean(-1, keepdims=True) + self._config.eps) * self.weight(name))

    def linear(self, x: Any, name: str, *, bias: bool = False) -> Any:
        product = x @ self.weight(f"{name}.weight").T
        return self._move(product + self.weight(f"{name}.bias") if bias else product)

    def layer(self, x: Any, prefix: str) -> Any:
        import numpy as np

        c = self._config
        mixed = self._attend(self.linear(self.norm(x, prefix + "norm1.weight"), prefix + "qkv", bias=c.qkv_bias))
        x = self._move(x + self.linear(mixed, prefix + "o", bias=c.output_bias))
        gate, up = np.split(self.linear(self.norm(x, prefix + "norm2.weight"), prefix + "gate_up"), 2, -1)
        return self._move(x + self.linear(self._move(gate / (1 + np.exp(-gate)) * up), prefix + "down"))

    def _attend(self, qkv: Any) -> Any:
        import numpy as np

        c, count = self._config, len(qkv)
        parts: list[Any] = np.split(qkv.reshape(count, -1, c.head_dim), [c.heads, c.heads + c.kv_heads], 1)
        q, k, v = self._turn(parts[0]), self._turn(parts[1]), parts[2]
        k, v = (array.repeat(c.heads // c.kv_heads, 1) for array in (k, v))
        scores = self._move(np.einsum("qhd,khd->hqk", q, k) / math.sqrt(c.head_dim)) + self._mask
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares = self._move(shares / shares.sum(-1, keepdims=True))
        return self._move(np.einsum("hqk,khd->qhd", shares, v).reshape(count, -1))

    def _turn(self, x: Any) -> Any:
        import numpy as np

        half = self._config.head_dim // 2
        return self._move(x * self._cos + np.concatenate([-x[..., half:], x[..., :half]], -1) * self._sin)


def divergence(logits: Array, truth: Array) -> float:
    """Return the mean KL divergence, in nats, of the distributions of next tokens from the truth's."""
    import numpy as np

    want, got = (_log_shares(array.astype(np.float64)) for array in (truth, logits))
    return float((np.exp(want) * (want - got)).sum(-1).mean())


def _log_shares(logits: Any) -> Any:
    import numpy as np

    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
