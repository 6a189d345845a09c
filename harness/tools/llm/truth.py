"""The right answers to a text: computed once in a worker, kept as files, and what others may be off by."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.base.case import RELATIVE_TOLERANCE, ROUNDING_FACTOR
from harness.compile.artifacts.artifact import JUDGE
from harness.compile.oracle.rounding import AMOUNT, DRAWS
from harness.measure.facts import Accuracy
from harness.tools.llm.config import LlmConfig, read_plain
from harness.tools.llm.formats import FORMATS, Format
from harness.tools.llm.judge import NAME, ReferenceAnswer, compute
from harness.tools.llm.weights import ModelWeights, effective_tensor, weights_of

if TYPE_CHECKING:
    from device_runner.device import Array
    from harness.tools.llm.judge import Move

TEXT_SEED = 7
ANGLE_SHARE = {"float32": 0.125, "float16": 0.0}
"""Share of a move that angles of rotations get, which is what one rounding to float32 does. Every format has them in
float32: behind 1,024 tokens they are off by 6e-5, for which half precision has room anyway."""
_ARRAYS, DISTANCES = ("logits", "hidden"), "distances.json"


def text(vocabulary: int, length: int) -> Array:
    """Return a text of random tokens. A longer one begins with the shorter."""
    return np.random.default_rng(TEXT_SEED).integers(0, vocabulary, length).astype(np.int32)


@dataclass(frozen=True)
class LlmTruth:
    """The right answers to a text, and how far off others may be."""

    config: LlmConfig
    reference: ReferenceAnswer
    distances: Sequence[float]
    """How far rounding moves the logits, relative to their peak; then what leaves each layer, to those of positions."""
    relative_tolerance: float
    rounding_factor: float

    @classmethod
    def compute(cls, weights: ModelWeights, form: Format, length: int) -> LlmTruth:
        """Compute a text, and once more with every number off by a few units, to see what rounding does."""
        config, moves = weights.config, [_mover(draw) for draw in range(DRAWS)]
        tensor = partial(effective_tensor, weights, form)
        answers = compute(config, tensor, text(config.vocabulary, length), moves, ANGLE_SHARE[form.dtype])
        truth = next(answers)
        draws = [_distances(moved, truth) for moved in answers]
        limits = RELATIVE_TOLERANCE[form.dtype], ROUNDING_FACTOR[form.dtype]
        return cls(config, truth, [max(distances) for distances in zip(*draws, strict=True)], *limits)

    def write(self, folder: Path) -> None:
        """Write the answers into a folder."""
        for name in _ARRAYS:
            np.save(folder / f"{name}.npy", getattr(self.reference, name).astype(np.float32))
        (folder / DISTANCES).write_text(json.dumps(self.distances), encoding="utf-8")
        (folder / JUDGE).write_text(json.dumps(NAME), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path, config: LlmConfig, relative_tolerance: float, rounding_factor: float) -> LlmTruth:
        """Read what `write` wrote; the arrays stay in their files until they are needed."""
        arrays = [np.load(folder / f"{name}.npy", "r", allow_pickle=False) for name in _ARRAYS]
        distances = json.loads((folder / DISTANCES).read_text(encoding="utf-8"))
        return cls(config, ReferenceAnswer(*arrays), distances, relative_tolerance, rounding_factor)

    @property
    def tolerance(self) -> float:
        """Tolerance of logits, relative to their peak."""
        return self._limit(0)

    def _limit(self, index: int) -> float:
        return max(self.relative_tolerance, self.rounding_factor * self.distances[index])

    def judge(self, logits: Array, begin: int) -> Accuracy:
        """Compare logits of positions from `begin` on."""
        from harness.measure.correctness import compare_answers

        want = self.reference.logits[begin : begin + len(logits)]
        return compare_answers([logits], [want.astype("float32")], self.tolerance)

    def first_wrong_layer(self, layers: list[Array], begin: int) -> int | None:
        """Return the first layer whose result is off at positions from `begin` on; None if all are right."""
        from harness.measure.correctness import compare_answers

        for index, (layer, hidden) in enumerate(zip(layers, self.reference.hidden, strict=True)):
            want = hidden[begin : begin + len(layer)]
            got, want = ((array / _peaks(want)).astype("float32") for array in (layer, want))
            if not compare_answers([got], [want], self._limit(1 + index)).right:
                return index
        return None


def _mover(draw: int) -> Move:
    """Return what moves each number of an array by up to a few units of float32."""
    rng = np.random.default_rng(draw)
    return lambda array: array + array * (2 * AMOUNT * (rng.random(array.shape, dtype=np.float32) - np.float32(0.5)))


def _distances(moved: ReferenceAnswer, truth: ReferenceAnswer) -> list[float]:
    layers = [(got, want, _peaks(want)) for got, want in zip(moved.hidden, truth.hidden, strict=True)]
    return [distance(moved.logits, truth.logits), *(distance(got / peaks, want / peaks) for got, want, peaks in layers)]


def _peaks(layer: Any) -> Any:
    """Return the peak of each position.

    In trained networks that of the first token may be hundreds of times those of the others (Sun et al. 2024, "Massive
    Activations in Large Language Models"): relative to it, nothing would be wrong at the others.
    """
    return np.maximum(np.abs(layer).max(-1, keepdims=True), np.finfo(np.float32).tiny)


def distance(answer: Any, other: Any) -> float:
    """Return the largest difference, relative to the other's peak."""
    with np.errstate(invalid="ignore"):  # inf - inf
        return float(np.abs(answer.astype(np.float64) - other).max() / (np.abs(other).max() or 1.0))


def write_truth(job: dict[str, Any], out: Path) -> None:
    """Worker only: compute the right answers into a folder."""
    weights = weights_of(read_plain(LlmConfig, job["config"]), job["weights"])
    LlmTruth.compute(weights, FORMATS[job["format"]], job["length"]).write(out)
