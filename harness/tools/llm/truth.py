"""The right answers to a text: computed once in a worker, kept as files, and what others may be off by."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.compile.artifacts.artifact import JUDGE
from harness.compile.oracle.rounding import AMOUNT, DRAWS
from harness.measure.correctness import compare_answers
from harness.measure.facts import Accuracy
from harness.tools.llm.config import LlmConfig, read_plain
from harness.tools.llm.formats import FORMATS, Format
from harness.tools.llm.judge import NAME, ReferenceAnswer, Rounded, compute
from harness.tools.llm.spread import RoundingSpread
from harness.tools.llm.weights import ModelWeights, effective_tensor, weights_of

if TYPE_CHECKING:
    from device_runner.device import Array

TEXT_SEED = 7
UNIT = {"float32": AMOUNT["float32"], "float16": 2.0**-11}
"""Largest error of a rounding. That of half precision is half a unit in the last place. In float32, which shows faults
anyway, OpenCL's functions may be off by four units (OpenCL C, 7.4)."""
MOST_OF_LOGIT = 8.0
"""Most that one logit may be off, in multiples of what rounding does where it does most."""
_ARRAYS, SPREADS = ("logits", "hidden"), "spreads.npz"


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
    """Worker only: compute the right answers into a folder."""
    weights = weights_of(read_plain(LlmConfig, job["config"]), job["weights"])
    LlmTruth.compute(weights, FORMATS[job["format"]], job["length"]).write(out)
