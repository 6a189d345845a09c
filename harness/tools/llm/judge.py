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

NAME = "numpy float64"
ANGLE_UNIT = 2.0**-20
"""How far off an angle of rotation may be, relative to itself. Every format has them in float32, by a power that OpenCL
allows to be off by 16 units in the last place (OpenCL C, 7.4)."""


@dataclass(frozen=True)
class ReferenceAnswer:
    """What a network makes of a text, at every position."""

    logits: Any
    """(positions, vocabulary)"""
    hidden: Any
    """What leaves each layer: (layers, positions, hidden)."""


class Exact:
    """Arithmetic without rounding."""

    def result(self, x: Any, unit: float | None = None) -> Any:
        """Return a result as it is kept; with a `unit`, as another format keeps it."""
        return x

    def product(self, x: Any, matrix: Any) -> Any:
        """Return the product of rows with those of a matrix."""
        return x @ matrix.T


class Rounded(Exact):
    """Arithmetic of a number format: results, and the partial sums of products, are off at random."""

    def __init__(self, unit: float, draw: int) -> None:
        """Draw errors of up to `unit`, relative to the number."""
        self._unit, self._rng = unit, np.random.default_rng(draw)

    def result(self, x: Any, unit: float | None = None) -> Any:
        """Return a result that is off by a rounding."""
        return x + x * (2 * (unit or self._unit) * (self._rng.random(x.shape, dtype=np.float32) - np.float32(0.5)))

    def product(self, x: Any, matrix: Any) -> Any:
        """Return products whose terms were added one after the other in this format, in random order.

        Of n terms, the k-th partial sum is rounded, its square is k/n times the sum of squares of the terms and (k/n)²
        times that of the whole, and roundings do not know of each other (Higham and Mary, SIAM J. Sci. Comput. 41,
        2019). The sum of squares is that of a row and a column whose numbers do not know of each other.
        """
        whole, n = super().product(x, matrix), x.shape[-1]
        squares = (x * x).sum(-1, keepdims=True) * (matrix * matrix).sum(-1) / n
        spread = self._unit * np.sqrt(n / 3 * (squares / 2 + whole * whole / 3))
        return whole + spread * self._rng.standard_normal(whole.shape, dtype=np.float32)


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
    config: LlmConfig, tensor: Callable[[str], Array], tokens: Array, more: Sequence[Exact] = ()
) -> Iterator[ReferenceAnswer]:
    """Compute a text exactly, and once more with each of `more` arithmetics.

    All take a layer before any takes the next one, so that each weight is made once: of a network of a billion numbers,
    making them takes longer than the arithmetic.
    """
    cached = functools.cache(tensor)
    networks = [_Network(config, cached, arithmetic, len(tokens)) for arithmetic in (Exact(), *more)]
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


class _Network:
    """A network in some arithmetic."""

    def __init__(self, config: LlmConfig, tensor: Callable[[str], Array], arithmetic: Exact, count: int) -> None:
        self._config, self._tensor = config, tensor
        self._kept, self._product = arithmetic.result, arithmetic.product
        angles = arithmetic.result(np.arange(count)[:, None] * frequencies(config), ANGLE_UNIT)
        self._cos, self._sin = (f(np.concatenate([angles, angles], -1))[:, None] for f in (np.cos, np.sin))
        self._mask = np.triu(np.full((count, count), -np.inf), 1)

    def weight(self, name: str) -> Any:
        """Return a weight in float64."""
        return self._tensor(name).astype("float64")

    def embed(self, tokens: Array) -> Any:
        """Return the rows of the table of embeddings."""
        return self._tensor("embed.weight")[tokens].astype("float64")

    def norm(self, x: Any, name: str) -> Any:
        return self._kept(x / np.sqrt((x * x).mean(-1, keepdims=True) + self._config.eps) * self.weight(name))

    def linear(self, x: Any, name: str, *, bias: bool = False) -> Any:
        product = self._product(x, self.weight(f"{name}.weight"))
        return self._kept(product + self.weight(f"{name}.bias") if bias else product)

    def logits(self, x: Any) -> Any:
        """Return the logits of what leaves the last layer."""
        x, head = self.norm(x, "norm.weight"), "embed.weight" if self._config.tied else "head.weight"
        blocks = (block.astype("float64") for block in row_blocks(self._tensor(head)))
        return self._kept(np.concatenate([self._product(x, block) for block in blocks], -1))

    def layer(self, x: Any, prefix: str) -> Any:
        """Return what leaves a layer."""
        c = self._config
        qkv = self.linear(self.norm(x, prefix + "norm1.weight"), prefix + "qkv", bias=c.qkv_bias)
        mixed = self._attend(*self._heads(qkv, prefix))
        x = self._kept(x + self.linear(mixed, prefix + "o", bias=c.output_bias))
        gate, up = np.split(self.linear(self.norm(x, prefix + "norm2.weight"), prefix + "gate_up"), 2, -1)
        return self._kept(x + self.linear(self._kept(gate / (1 + np.exp(-gate)) * up), prefix + "down"))

    def _heads(self, qkv: Any, prefix: str) -> tuple[Any, Any, Any]:
        """Return queries, keys and values: (positions, heads, size)."""
        c = self._config
        q, k, v = np.split(qkv.reshape(len(qkv), -1, c.head_dim), [c.heads, c.heads + c.kv_heads], 1)
        if c.head_norms:
            q, k = self.norm(q, prefix + "q_norm.weight"), self.norm(k, prefix + "k_norm.weight")
        return self._turn(q), self._turn(k), v

    def _attend(self, q: Any, k: Any, v: Any) -> Any:
        c, count = self._config, len(q)
        k, v = (array.repeat(c.heads // c.kv_heads, 1) for array in (k, v))
        scores = self._kept(np.einsum("qhd,khd->hqk", q, k) / math.sqrt(c.head_dim)) + self._mask
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares = self._kept(shares / shares.sum(-1, keepdims=True))
        return self._kept(np.einsum("hqk,khd->qhd", shares, v).reshape(count, -1))

    def _turn(self, x: Any) -> Any:
        half = self._config.head_dim // 2
        return self._kept(x * self._cos + np.concatenate([-x[..., half:], x[..., :half]], -1) * self._sin)


def divergence(logits: Array, truth: Array) -> float:
    """Return the mean KL divergence, in nats, of the distributions of next tokens from the truth's."""
    want, got = (_log_shares(array.astype(np.float64)) for array in (truth, logits))
    return float((np.exp(want) * (want - got)).sum(-1).mean())


def _log_shares(logits: Any) -> Any:
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
