"""The right answers to a text: computed once in a worker, kept as files, and how far rounding may move those of others.

Half precision is off by percents where much is added, at some positions and columns ten times as far as at others. A
fault that is smaller than the largest rounding still moves most positions, or one column at most of them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from device_runner.device import Array
from harness.compile.artifacts.artifact import JUDGE
from harness.compile.oracle.rounding import AMOUNT, DRAWS
from harness.measure.correctness import compare_answers
from harness.measure.facts import Accuracy
from harness.tools.llm.config import LlmConfig, read_plain
from harness.tools.llm.folders import MlcFolder, MlcWeights, weights_of
from harness.tools.llm.judge import NAME, ReferenceAnswer, Rounded, compute
from harness.tools.llm.weights import Format, ModelWeights, effective_tensor

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
        draws = [_spreads(answer, truth) for answer in answers]
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


def _spreads(answer: ReferenceAnswer, truth: ReferenceAnswer) -> list[RoundingSpread]:
    errors = [_centred(answer.logits - truth.logits), *(answer.hidden - truth.hidden)]
    return [RoundingSpread.of(error) for error in errors]


def _centred(logits: Any) -> Any:
    with np.errstate(invalid="ignore"):  # inf - inf
        return logits - logits.mean(-1, keepdims=True)


def distance(answer: Any, other: Any) -> float:
    """Return the largest difference, relative to the other's peak."""
    with np.errstate(invalid="ignore"):  # inf - inf
        return float(np.abs(answer.astype(np.float64) - other).max() / (np.abs(other).max() or 1.0))


def write_truth(job: dict[str, Any], out: Path) -> None:
    """Worker only: compute the right answers into a folder, or name the other judge where nobody knows the network."""
    if not job["config"]:
        (out / JUDGE).write_text(json.dumps("invariants"), encoding="utf-8")
        return
    config, place = read_plain(LlmConfig, job["config"]), job["weights"]
    weights = MlcWeights(config, MlcFolder(Path(place))) if job["mlc"] else weights_of(config, place)
    LlmTruth.compute(weights, read_plain(Format, job["form"]), job["length"]).write(out)
