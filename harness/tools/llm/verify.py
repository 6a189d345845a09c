"""Is a library right? Logits are held to numpy's, at every position and every step, and to each other.

The invariants need no judge: a prompt in chunks is the prompt at once, a decode after n tokens is the last position of
n + 1, a step taken back and taken again is the same, and so is the same text twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness.base.suite import RELATIVE_TOLERANCE, ROUNDING_FACTOR
from harness.compile.oracle.rounding import AMOUNT, DRAWS
from harness.measure.correctness import compare_answers
from harness.measure.facts import Accuracy
from harness.tools.llm.cases import DECODES, LlmTest
from harness.tools.llm.config import LlmConfig
from harness.tools.llm.conversation import Conversation
from harness.tools.llm.formats import Format
from harness.tools.llm.judge import ReferenceAnswer, compute, divergence
from harness.tools.llm.network import DECODE, DECODE_LAYERS, PREFILL, SCORE
from harness.tools.llm.weights import EffectiveWeights, Weights

if TYPE_CHECKING:
    from device_runner.device import Array
    from harness.tools.llm.judge import Move

TEXT_SEED = 7


def text(config: LlmConfig, length: int) -> Array:
    """Return a text of random tokens. A longer one begins with the shorter."""
    import numpy as np

    return np.random.default_rng(TEXT_SEED).integers(0, config.vocabulary, length).astype(np.int32)


@dataclass(frozen=True)
class LlmTruth:
    """The right answers to a text in a number format, and how far off others may be."""

    config: LlmConfig
    weights: Weights
    form: Format
    length: int

    @cached_property
    def _answers(self) -> list[ReferenceAnswer]:
        """The right answers, then those with every number off by a few units."""
        effective = EffectiveWeights(self.weights, self.form)
        return compute(self.config, effective, text(self.config, self.length), [_mover(draw) for draw in range(DRAWS)])

    @property
    def reference(self) -> ReferenceAnswer:
        """The right answers."""
        return self._answers[0]

    @cached_property
    def rounding(self) -> list[float]:
        """What rounding may do: to the logits, then to what leaves each layer; relative to their peaks."""
        truth, *moved = map(_tensors, self._answers)
        distances = [[_distance(*pair) for pair in zip(tensors, truth, strict=True)] for tensors in moved]
        return [ROUNDING_FACTOR[self.form.dtype] * max(draws) for draws in zip(*distances, strict=True)]

    @property
    def tolerance(self) -> float:
        """Tolerance of logits, relative to their peak."""
        return max(RELATIVE_TOLERANCE[self.form.dtype], self.rounding[0])

    def judge(self, logits: Array, begin: int) -> Accuracy:
        """Compare logits of positions from `begin` on."""
        want = self.reference.logits[begin : begin + len(logits)]
        return compare_answers([logits], [want.astype("float32")], self.tolerance)

    def first_wrong_layer(self, layers: list[Array], begin: int) -> int | None:
        """Return the first layer whose result is off at positions from `begin` on; None if all are right."""
        for index, (layer, hidden) in enumerate(zip(layers, self.reference.hidden, strict=True)):
            limit = max(RELATIVE_TOLERANCE[self.form.dtype], self.rounding[1 + index])
            want = hidden[begin : begin + len(layer)]
            if not compare_answers([layer.astype("float32")], [want.astype("float32")], limit).right:
                return index
        return None


def _mover(draw: int) -> Move:
    """Return what moves each number of an array by up to a few units of float32."""
    import numpy as np

    rng = np.random.default_rng(draw)
    return lambda array: array + array * (2 * AMOUNT * (rng.random(array.shape, dtype=np.float32) - np.float32(0.5)))


def _tensors(reference: ReferenceAnswer) -> list[Array]:
    return [reference.logits, *reference.hidden]


def _distance(answer: Any, other: Any) -> float:
    import numpy as np

    return float(np.abs(answer.astype(np.float64) - other).max() / (np.abs(other).max() or 1.0))


@dataclass
class LlmVerdict:
    """What became known of a test's answers."""

    accuracy: Accuracy | None = None
    """The worst of all steps."""
    divergence: float = 0.0
    invariants: dict[str, float] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        """Whether nothing is wrong so far."""
        return self.accuracy is None or self.accuracy.right

    def add(self, accuracy: Accuracy, where: str) -> None:
        """Add a step's accuracy; the first that is wrong stays, with its place."""
        if not self.right:
            return
        if not accuracy.right:
            accuracy = replace(accuracy, complaint=f"{where}: {accuracy.complaint}")
        if self.accuracy is None or not accuracy.right or accuracy.max_rel_err > self.accuracy.max_rel_err:
            self.accuracy = accuracy


def verify(test: LlmTest, conversation: Conversation, truth: LlmTruth) -> LlmVerdict:
    """Run a test's steps and judge each, until one is wrong. Raises what the device raises."""
    verdict = LlmVerdict()
    steps = _decodes if test.decodes else _prompt
    for begin, logits, where, layers in steps(test, conversation, truth):
        accuracy = truth.judge(logits, begin)
        verdict.divergence = max(verdict.divergence, divergence(logits, truth.reference.logits[begin:][: len(logits)]))
        layer = None if accuracy.right else truth.first_wrong_layer(layers or [], begin)
        verdict.add(accuracy, where if layer is None else f"{where}, from layer {layer} on")
        if not verdict.right:
            return verdict
    if test.chunks > 1:
        _hold_invariants(test, conversation, truth, verdict)
    return verdict


StepAnswer = tuple[int, "Array", str, "list[Array] | None"]
"""First position, logits, a name for people, and what leaves each layer, if that is known."""


def _prompt(test: LlmTest, conversation: Conversation, truth: LlmTruth) -> Iterator[StepAnswer]:
    """Score a prompt in its chunks, then take its last position as applications do.

    A prompt whose logits are too large for one answer over RPC is scored in parts, and taken at once afterwards.
    """
    import numpy as np

    conversation.restart()
    tokens = text(truth.config, test.length)
    if test.chunks == 1:
        conversation.fill(tokens[: test.depth])
        tokens = tokens[test.depth :]
    for part in np.array_split(tokens, max(test.chunks, _answers_of(truth.config, len(tokens)))):
        begin = conversation.length
        logits, *layers = conversation.step(SCORE, part)
        yield begin, logits, f"prefill of {len(part)} tokens at {begin}", layers
    conversation.forget(test.tokens)
    logits = conversation.step(PREFILL, tokens[-test.tokens :])[0]
    yield conversation.length - 1, logits, f"prefill's last position at {conversation.length - 1}", None


def _answers_of(config: LlmConfig, count: int) -> int:
    """Return how many answers carry logits and layers of all these positions."""
    from device_runner.session.rpc_session import OUTPUT_LIMIT_BYTES

    position_bytes = 4 * (config.vocabulary + config.layers * config.hidden)
    return math.ceil(count * position_bytes / OUTPUT_LIMIT_BYTES)


def _decodes(test: LlmTest, conversation: Conversation, truth: LlmTruth) -> Iterator[StepAnswer]:
    """Take tokens one by one; of a wrong one, take the layers of that step."""
    conversation.restart()
    tokens = text(truth.config, test.length)
    conversation.fill(tokens[: test.depth])
    for step in range(DECODES):
        begin, token = conversation.length, tokens[test.depth + step :][:1]
        logits = conversation.step(DECODE, token)[0]
        layers = None
        if not truth.judge(logits, begin).right:
            conversation.forget(1)
            layers = conversation.step(DECODE_LAYERS, token)[1:]
        yield begin, logits, f"step {step + 1} of decode after {begin} tokens", layers


def _hold_invariants(test: LlmTest, conversation: Conversation, truth: LlmTruth, verdict: LlmVerdict) -> None:
    """Compare answers that have to be the same."""
    for name, answer, other in invariants(conversation, text(truth.config, test.length), test.chunks):
        verdict.invariants[name] = _distance(answer, other)
        verdict.add(compare_answers([answer], [other], truth.tolerance), f"invariant `{name}`")


def invariants(conversation: Conversation, tokens: Array, count: int) -> Iterator[tuple[str, Any, Any]]:
    """Yield pairs of answers that have to be the same, by what is compared. They need no judge."""
    import numpy as np

    def score(tokens: Array) -> Array:
        return conversation.step(SCORE, tokens)[0]

    conversation.restart()
    whole = score(tokens)
    conversation.restart()
    parts = np.array_split(tokens, count)
    scored = [score(part) for part in parts]
    yield "in chunks = at once", np.concatenate(scored), whole
    conversation.forget(len(parts[-1]))
    yield "taken back and again = before", score(parts[-1]), scored[-1]
    conversation.forget(1)
    yield "decode after n = prefill of n + 1", conversation.step(DECODE, tokens[-1:])[0], whole[-1:]
    conversation.restart()
    yield "the same text twice", score(tokens), whole
