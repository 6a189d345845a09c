"""The right answers to a text, and how far rounding may move those of a library.

numpy computes them in float64, without a cache: all tokens anew, and no pages. A worker does that once for a network
and keeps the answers as files. Half precision is off by percents where much is added, at some positions and columns ten
times as far as at others. A fault that is smaller than the largest rounding still moves most positions, or one column
at most of them.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax, softmax

from device_runner.device import Array
from harness.compile.artifacts.artifact import JUDGE
from harness.compile.oracle.rounding import AMOUNT, DRAWS
from harness.measure.correctness import compare_answers
from harness.measure.facts import Accuracy
from harness.tools.llm.config import LlmConfig, read_plain
from harness.tools.llm.folders import MlcFolder, MlcWeights, weights_of
from harness.tools.llm.weights import Format, ModelWeights, effective_tensor, row_blocks

NAME = "numpy float64"
ANGLE_UNIT = 2.0**-20
"""How far off an angle of rotation may be, relative to itself. Every format has them in float32, by a power that OpenCL
allows to be off by 16 units in the last place (OpenCL C, 7.4)."""
TEXT_SEED = 7
UNIT = {"float32": AMOUNT["float32"], "float16": 2.0**-11}
"""Largest error of a rounding. That of half precision is half a unit in the last place. In float32, which shows faults
anyway, OpenCL's functions may be off by four units (OpenCL C, 7.4)."""
MOST_OF_LOGIT = 8.0
"""Most that one logit may be off, in multiples of what rounding does where it does most."""
_ARRAYS, SPREADS = ("logits", "hidden"), "spreads.npz"
MOST_IN_MEAN, MOST = 1.25, 6.0
"""Most that positions may be off in the mean, and one may be, in multiples of what rounding does there: 1.8 times as
far as any right library was (docs/data/trained-llm.md)."""
MOST_OF_COLUMN, CROWD = 3.0, 16
"""Most that a column may be off in the median of its positions, from so many positions on; rounding does about 0.7."""
LEAST_SHARE = 0.1
"""Least spread of a column, as a share of the typical one: what is nearly 0 may be rounded to 0."""
TINY = float(np.finfo(np.float32).tiny)


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
    states = [[network.embed(tokens)] for network in networks]
    for layer in range(config.layers):
        cached.cache_clear()
        for network, own in zip(networks, states, strict=True):
            own.append(network.layer(own[-1], f"layers.{layer}."))
    cached.cache_clear()
    for network, (_, *hidden) in zip(networks, states, strict=True):
        yield ReferenceAnswer(network.logits(hidden[-1]), np.stack(hidden))


class _Network:
    """A network in some arithmetic."""

    def __init__(self, config: LlmConfig, tensor: Callable[[str], Array], arithmetic: Exact, count: int) -> None:
        self._config, self._tensor = config, tensor
        self._kept, self._product = arithmetic.result, arithmetic.product
        angles = arithmetic.result(np.arange(count)[:, None] * frequencies(config), ANGLE_UNIT)
        self._cos, self._sin = (f(np.concatenate([angles, angles], -1))[:, None] for f in (np.cos, np.sin))
        self._mask = np.triu(np.full((count, count), -np.inf), 1)

    def weight(self, name: str) -> Any:
        return self._tensor(name).astype("float64")

    def embed(self, tokens: Array) -> Any:
        return self._tensor("embed.weight")[tokens].astype("float64")

    def norm(self, x: Any, name: str) -> Any:
        return self._kept(x / np.sqrt((x * x).mean(-1, keepdims=True) + self._config.eps) * self.weight(name))

    def linear(self, x: Any, name: str, *, bias: bool = False) -> Any:
        product = self._product(x, self.weight(f"{name}.weight"))
        return self._kept(product + self.weight(f"{name}.bias") if bias else product)

    def logits(self, x: Any) -> Any:
        x, head = self.norm(x, "norm.weight"), "embed.weight" if self._config.tied else "head.weight"
        blocks = (block.astype("float64") for block in row_blocks(self._tensor(head)))
        return self._kept(np.concatenate([self._product(x, block) for block in blocks], -1))

    def layer(self, x: Any, prefix: str) -> Any:
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
        shares = self._kept(softmax(scores, -1))
        return self._kept(np.einsum("hqk,khd->qhd", shares, v).reshape(count, -1))

    def _turn(self, x: Any) -> Any:
        half = self._config.head_dim // 2
        return self._kept(x * self._cos + np.concatenate([-x[..., half:], x[..., :half]], -1) * self._sin)


def divergence(logits: Array, truth: Array) -> float:
    """Return the mean KL divergence, in nats, of the distributions of next tokens from the truth's."""
    want, got = (log_softmax(array.astype(np.float64), -1) for array in (truth, logits))
    return float((np.exp(want) * (want - got)).sum(-1).mean())


@dataclass(frozen=True)
class RoundingSpread:
    """What rounding does to an array of (positions, columns): to each number, the product of the two."""

    positions: Any
    """Root mean square of each position, relative to its columns'."""
    columns: Any
    """Median size in each column, relative to that of its position."""

    @classmethod
    def of(cls, draw: Any) -> RoundingSpread:
        """Return the spread of one draw of rounding errors."""
        sizes = np.abs(draw)
        columns = np.median(sizes / np.maximum(np.median(sizes, 1, keepdims=True), TINY), 0)
        columns = np.maximum(columns, LEAST_SHARE * np.median(columns) + TINY)
        return cls(np.maximum(_size(draw / columns), TINY), columns)

    @classmethod
    def of_all(cls, draws: Sequence[RoundingSpread]) -> RoundingSpread:
        """Return the spread that several draws show together."""
        positions = np.sqrt(np.mean([draw.positions**2 for draw in draws], 0))
        return cls(positions, np.mean([draw.columns for draw in draws], 0))

    @property
    def largest(self) -> float:
        """What rounding does where it does most."""
        return float(self.positions.max() * self.columns.max())

    def share_of(self, answer: Any) -> float:
        """Return how far rounding moves an answer, relative to what it is, at the median position."""
        return float(np.median(self.positions / _size(answer / self.columns)))

    def multiples(self, error: Any, begin: int) -> Any:
        """Return the multiple of its spread by which each position from `begin` on is off."""
        return _size(error / self.columns) / self._at(error, begin)

    def complain(self, error: Any, begin: int) -> str:
        """Say how errors at positions from `begin` on are more than rounding; empty if they are not.

        One position may be as far off as `MOST`, so few may be farther off in the mean than many.
        """
        multiples = self.multiples(error, begin)
        far, most = ~(multiples <= MOST), MOST_IN_MEAN + (MOST - MOST_IN_MEAN) / len(multiples)
        if far.any():
            return f"{_times(multiples[far.argmax()], MOST)} at position {begin + int(far.argmax())}"
        if multiples.mean() > most:
            return f"{_times(multiples.mean(), most)} in the mean of {len(multiples)} positions"
        columns = np.median(np.abs(error / self.columns) / self._at(error, begin)[:, None], 0)
        if len(multiples) >= CROWD and columns.max() > MOST_OF_COLUMN:
            return f"{_times(columns.max(), MOST_OF_COLUMN)} in column {int(columns.argmax())} at most positions"
        return ""

    def _at(self, error: Any, begin: int) -> Any:
        return self.positions[begin : begin + len(error)]


def _size(numbers: Any) -> Any:
    return np.sqrt(np.square(numbers, dtype=np.float64).mean(-1))


def _times(multiple: float, most: float) -> str:
    return f"is off by {multiple:.3g} times what rounding does (at most {most:.3g})"


def text(vocabulary: int, length: int) -> Array:
    """Return a text of random tokens. A longer one begins with the shorter."""
    return np.random.default_rng(TEXT_SEED).integers(0, vocabulary, length).astype(np.int32)


@dataclass(frozen=True)
class LlmTruth:
    """The right answers to a text, and how far off others may be."""

    config: LlmConfig
    reference: ReferenceAnswer
    spreads: Sequence[RoundingSpread]
    """How far rounding moves the logits, less their mean at each position, which no probability depends on; then what
    leaves each layer."""
    stated_tolerance: float | None = None
    """What a suite says instead, relative to the peak."""

    @classmethod
    def compute(cls, weights: ModelWeights, form: Format, length: int) -> LlmTruth:
        """Compute a text, and once more as the format rounds it, at random, to see what rounding does."""
        rounded = [Rounded(UNIT[form.dtype], draw) for draw in range(DRAWS)]
        tokens = text(weights.config.vocabulary, length)
        answers = compute(weights.config, partial(effective_tensor, weights, form), tokens, rounded)
        truth = next(answers)
        draws = [[RoundingSpread.of(error) for error in _errors(answer, truth)] for answer in answers]
        return cls(weights.config, truth, [RoundingSpread.of_all(spreads) for spreads in zip(*draws, strict=True)])

    def write(self, folder: Path) -> None:
        """Write the answers into a folder."""
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self.reference, name).astype(np.float32))
        np.savez(folder / SPREADS, *(array for spread in self.spreads for array in (spread.positions, spread.columns)))
        (folder / JUDGE).write_text(json.dumps(NAME), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path, config: LlmConfig, stated_tolerance: float | None) -> LlmTruth:
        """Read what `write` wrote; the large arrays stay in their files until they are needed."""
        arrays = [np.load(folder / f"{name}.npy", "r", allow_pickle=False) for name in _ARRAYS]
        with np.load(folder / SPREADS, allow_pickle=False) as archive:
            pairs = [archive[name] for name in archive.files]
        spreads = [RoundingSpread(*pair) for pair in zip(pairs[::2], pairs[1::2], strict=True)]
        return cls(config, ReferenceAnswer(*arrays), spreads, stated_tolerance)

    @property
    def vocabulary(self) -> int:
        """Number of different tokens."""
        return self.config.vocabulary

    @property
    def rounding(self) -> float:
        """How far rounding moves the logits, relative to what they differ by at a position."""
        return self.spreads[0].share_of(_centred(self.reference.logits))

    def judge(self, logits: Array, begin: int, layers: Sequence[Array] = ()) -> Accuracy:
        """Compare logits of positions from `begin` on, and what leaves each layer, if that is told."""
        accuracy = self._compare(logits, self._expected(logits, begin), begin)
        if self.stated_tolerance is not None:
            return accuracy
        for index, layer in enumerate(layers):
            error = layer - self.reference.hidden[index, begin : begin + len(layer)]
            if complaint := self.spreads[1 + index].complain(error, begin):
                return replace(accuracy, right=False, complaint=f"layer {index} {complaint}")
        return accuracy

    def compare_two(self, answer: Array, other: Array, begin: int) -> Accuracy:
        """Compare two answers of a library, each of which is off in its own way."""
        return self._compare(answer, other, begin, math.sqrt(0.5))

    def _compare(self, logits: Any, other: Any, begin: int, share: float = 1.0) -> Accuracy:
        """Compare logits with others; `share` of how far they are apart is one's own error."""
        if self.stated_tolerance is not None:
            return compare_answers([logits], [other], self.stated_tolerance)
        spread, peak = self.spreads[0], float(np.abs(other).max()) or 1.0
        accuracy = compare_answers([logits], [other], MOST_OF_LOGIT / share * spread.largest / peak)
        if accuracy.right and (complaint := spread.complain(share * _centred(logits - other), begin)):
            return replace(accuracy, right=False, complaint=f"the answer {complaint}")
        return accuracy

    def multiple(self, logits: Any, begin: int) -> float:
        """Return the mean multiple of its rounding by which a position is off."""
        return float(self.spreads[0].multiples(_centred(logits - self._expected(logits, begin)), begin).mean())

    def _expected(self, logits: Array, begin: int) -> Any:
        return self.reference.logits[begin : begin + len(logits)].astype("float32")


def _errors(answer: ReferenceAnswer, truth: ReferenceAnswer) -> list[Any]:
    return [_centred(answer.logits - truth.logits), *(answer.hidden - truth.hidden)]


def _centred(logits: Any) -> Any:
    with np.errstate(invalid="ignore"):  # inf - inf
        return logits - logits.mean(-1, keepdims=True)


def write_truth(job: dict[str, Any], out: Path) -> None:
    """Worker only: compute the right answers into a folder, or name the other judge where nobody knows the network."""
    if not job["config"]:
        (out / JUDGE).write_text(json.dumps("invariants"), encoding="utf-8")
        return
    config, place = read_plain(LlmConfig, job["config"]), job["weights"]
    weights = MlcWeights(config, MlcFolder(Path(place))) if job["mlc"] else weights_of(config, place)
    LlmTruth.compute(weights, read_plain(Format, job["form"]), job["length"]).write(out)
