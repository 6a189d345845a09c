"""Is a library right? Logits are held to numpy's, at every position and every step, and to each other.

The invariants need no judge: a prompt in chunks is the prompt at once, a decode after n tokens is the last position of
n + 1, a step taken back and taken again is the same, and so is the same text twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from device_runner.device import Array
from device_runner.session import rpc_session
from harness.measure.correctness import compare_answers
from harness.measure.facts import Accuracy
from harness.tools.llm.cases import LlmTest
from harness.tools.llm.conversation import Conversation
from harness.tools.llm.judge import LlmTruth, divergence, text
from harness.tools.llm.network import DECODE, DECODE_LAYERS, PREFILL, SCORE

PARTS = 5
"""Chunks of a text: of 128 tokens, they begin within pages of the cache."""


@dataclass
class LlmVerdict:
    """What became known of a test's answers."""

    accuracy: Accuracy | None = None
    """The worst of all steps."""
    divergence: float = 0.0
    multiple: float = 0.0
    """See `LlmPart.rounding`."""
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


@dataclass
class Invariants:
    """Judges a library whose network nobody knows: its answers are held to each other."""

    vocabulary: int
    tolerance: float
    answer: Any = None
    """Its answer to the step that is timed, before that."""

    def judge(self, logits: Array, begin: int) -> Accuracy:
        """Compare logits with those of the same step before."""
        return self.compare_two(logits, self.answer, begin)

    def compare_two(self, answer: Array, other: Array, _begin: int) -> Accuracy:
        """Compare two answers of the library."""
        return compare_answers([answer], [other], self.tolerance)


def verify(test: LlmTest, conversation: Conversation, truth: LlmTruth | Invariants) -> LlmVerdict:
    """Run a test's steps and judge each, until one is wrong; where only `Invariants` judge, hold answers to each other.

    Raises what the device raises.
    """
    verdict, tokens = LlmVerdict(), text(truth.vocabulary, test.length)
    if isinstance(truth, Invariants):
        hold(conversation, tokens, truth, verdict)
        truth.answer = conversation.answer(test.last_step, timed_tokens(test, conversation, truth))
        return verdict
    steps = _decodes if test.decodes else _prompt
    for begin, logits, where, layers in steps(test, conversation, truth):
        verdict.add(truth.judge(logits, begin, layers), where)
        if logits.shape[-1] == truth.vocabulary:
            right = truth.reference.logits[begin : begin + len(logits)]
            verdict.divergence = max(verdict.divergence, divergence(logits, right))
            verdict.multiple = max(verdict.multiple, truth.multiple(logits, begin))
        if not verdict.right:
            return verdict
    if test.in_chunks:
        hold(conversation, tokens, truth, verdict)
    return verdict


def timed_tokens(test: LlmTest, conversation: Conversation, truth: LlmTruth | Invariants) -> Array:
    """Fill an empty cache to the test's depth; return the tokens that come next: those of the step that is timed."""
    return conversation.begin(text(truth.vocabulary, test.depth + test.tokens), test.depth)


StepAnswer = tuple[int, Array, str, Sequence[Array]]
"""First position, logits, a name for people, and what leaves each layer, if the library tells it."""


def _prompt(test: LlmTest, conversation: Conversation, truth: LlmTruth) -> Iterator[StepAnswer]:
    """Score a prompt, then take its last position as applications do.

    A prompt whose logits are too large for one answer over RPC is scored in parts, and taken at once afterwards.
    """
    tokens = conversation.begin(text(truth.vocabulary, test.length), test.length - test.prompt)
    position_bytes = 4 * (truth.config.vocabulary + truth.config.layers * truth.config.hidden)
    answers = math.ceil(len(tokens) * position_bytes / rpc_session.OUTPUT_LIMIT_BYTES)
    count = max(PARTS if test.in_chunks else 1, answers, len(conversation.parts(tokens)))
    for part in np.array_split(tokens, count):
        begin = conversation.length
        logits, *layers = conversation.step(SCORE, part)
        yield conversation.length - len(logits), logits, f"prefill of {len(part)} tokens at {begin}", layers
    conversation.forget(test.tokens)
    logits = conversation.answer(PREFILL, tokens[-test.tokens :])
    yield conversation.length - 1, logits, f"prefill's last position at {conversation.length - 1}", ()


def _decodes(test: LlmTest, conversation: Conversation, truth: LlmTruth) -> Iterator[StepAnswer]:
    """Take tokens one by one, then the last one as applications do."""
    tokens = conversation.begin(text(truth.vocabulary, test.length), test.depth)
    answers = [conversation.step(DECODE_LAYERS, token) for token in tokens[:, None]]
    logits, *layers = map(np.concatenate, zip(*answers, strict=True))
    yield test.depth, logits, f"{len(answers)} decodes after {test.depth} tokens", layers
    conversation.forget(1)
    last = test.length - 1
    yield last, conversation.step(DECODE, tokens[-1:])[0], f"decode after {last} tokens", ()


def hold(conversation: Conversation, tokens: Array, judge: LlmTruth | Invariants, verdict: LlmVerdict) -> None:
    """Compare answers to a text that have to be the same, and one to another text, which has to be another."""
    conversation.restart()
    whole = conversation.score(tokens)
    for name, answer, other in invariants(conversation, tokens, whole):
        accuracy = judge.compare_two(answer, other, len(tokens) - len(answer))
        verdict.invariants[name] = accuracy.max_rel_err
        verdict.add(accuracy, f"invariant `{name}`")
    conversation.restart()
    another = conversation.score((tokens + 1) % judge.vocabulary)
    accuracy = judge.compare_two(another[-1:], whole[-1:], len(tokens) - 1)
    if accuracy.right or not np.isfinite(whole).all():  # all that was compared has the same NaN then
        logits = " ".join(f"{logit:.4g}" for logit in whole[-1, :4])
        complaint = f"it is not finite, or the same for another text: {logits} ..."
        verdict.add(replace(accuracy, right=False, complaint=complaint), "answer to the whole text")


def invariants(conversation: Conversation, tokens: Array, whole: Array) -> Iterator[tuple[str, Any, Any]]:
    """Yield pairs of answers that have to be the same, by what is compared. They need no judge.

    `whole` is the answer to the text at once: in one step, or several of a slow device. Each has `PARTS` chunks.
    """
    conversation.restart()
    parts = np.array_split(tokens, min(len(tokens), PARTS * len(conversation.parts(tokens))))
    scored = [conversation.score(part) for part in parts]
    yield "in chunks = at once", np.concatenate(scored)[-len(whole) :], whole
    conversation.forget(len(parts[-1]))
    yield "taken back and again = before", conversation.score(parts[-1]), scored[-1]
    conversation.forget(1)
    yield "decode after n = prefill of n + 1", conversation.step(DECODE, tokens[-1:])[0], whole[-1:]
    conversation.restart()
    yield "the same text twice", conversation.score(tokens), whole
