"""What a library is asked before its answers count as right."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from device_runner.session import rpc_session
from harness.tools.llm.cases import test_of as llm_test
from harness.tools.llm.config import LlmConfig
from harness.tools.llm.conversation import Conversation
from harness.tools.llm.judge import LlmTruth, compute, text
from harness.tools.llm.network import PAGE, PREFILL, SCORE, Step
from harness.tools.llm.verify import PARTS, Invariants, LlmVerdict, hold, invariants, timed_tokens, verify
from harness.tools.llm.weights import FORMATS, SeededWeights

CONFIG = LlmConfig(2, 64, 4, 2, 32, 96, 128)
TEST = llm_test("pp32")
TRUTH = LlmTruth.compute(SeededWeights(CONFIG), FORMATS["float32"], 128)
TEXT = text(CONFIG.vocabulary, 128)
OTHER = next(compute(CONFIG, SeededWeights(CONFIG).tensor, (TEXT + 1) % CONFIG.vocabulary))
"""The answer to another text."""
POSITION_BYTES = 4 * (128 + 2 * 64)


@dataclass
class RightLibrary(Conversation):
    """Answers as the truth does, and counts what it is asked."""

    machine: Any = None
    weights: Any = None
    asked: list[tuple[str, int]] = field(default_factory=list)

    def step(self, step: Step, tokens: Any) -> list[Any]:
        begin, self.length = self.length, self.length + len(tokens)
        self.asked.append((step.name, len(tokens)))
        rows = slice(begin, self.length) if step is SCORE else slice(self.length - 1, self.length)
        reference = TRUTH.reference if tokens[0] == TEXT[begin] else OTHER
        return [reference.logits[rows].astype(np.float32), *reference.hidden[:, rows]]

    def _change(self, function: str, *arguments: int) -> None:
        """Have no cache."""

    def __post_init__(self) -> None:
        """Have no machine."""


@pytest.mark.parametrize(("positions", "parts"), [(32, [32]), (20, [16, 16]), (11, [11, 11, 10])])
def test_a_prompt_is_scored_in_answers_that_rpc_carries_and_then_taken_at_once(
    positions: int, parts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc_session, "OUTPUT_LIMIT_BYTES", positions * POSITION_BYTES)
    library = RightLibrary()
    assert verify(TEST, library, TRUTH).right
    assert library.asked == [*(("score", part) for part in parts), ("prefill", 32)]


def test_no_step_is_longer_than_the_device_takes_and_the_judge_sees_every_position() -> None:
    library = RightLibrary(chunk=16)
    assert verify(TEST, library, TRUTH).right
    assert library.asked == [("score", 16)] * 2 + [("prefill", 16)] * 2
    library.asked.clear()
    assert verify(llm_test("chunks"), library, TRUTH).invariants
    assert max(count for _, count in library.asked) == 16


@pytest.mark.parametrize("chunk", [1, 2, 48, 512])
def test_the_whole_text_is_taken_in_chunks_that_begin_within_pages(chunk: int) -> None:
    library = RightLibrary(chunk=chunk)
    tokens = text(CONFIG.vocabulary, 128)
    pairs = list(invariants(library, tokens, library.score(tokens)))
    assert len(pairs) == 4
    assert all(np.array_equal(answer, other) for _, answer, other in pairs)
    whole = -(-128 // chunk)
    counts = [count for _, count in library.asked]
    assert sum(counts[:whole]) == 128
    assert counts[whole] == min(chunk, -(-128 // min(128, PARTS * whole)))
    assert min(counts) == 1 <= counts[whole]


@pytest.mark.parametrize("judge", [TRUTH, Invariants(CONFIG.vocabulary, 1e-3)])
def test_the_timed_text_is_the_judged_one(judge: Any) -> None:
    """Of another one, the judge would call a right answer wrong after the steps that were timed."""
    library, test = RightLibrary(), llm_test("pp32@d32")
    assert verify(test, library, judge).right
    assert timed_tokens(test, library, judge).tolist() == TEXT[32:64].tolist()
    assert judge.judge(library.answer(PREFILL, TEXT[32:64]), 63).right
    assert not judge.judge(library.answer(PREFILL, TEXT[64:65]), 63).right


@dataclass
class LostLibrary(RightLibrary):
    """Has the same answer to every text."""

    logit: float = 1.0

    def step(self, step: Step, tokens: Any) -> list[Any]:
        return [np.full((len(tokens), 4), self.logit, np.float32)]


@pytest.mark.parametrize("logit", [0.0, 1.0, math.nan, math.inf])
def test_the_same_answer_to_every_text_is_wrong_though_each_is_as_before(logit: float) -> None:
    verdict = LlmVerdict()
    hold(LostLibrary(logit=logit), text(CONFIG.vocabulary, 33), Invariants(CONFIG.vocabulary, 1e-3), verdict)
    assert verdict.accuracy
    assert f"the same for another text: {logit:.4g} " in verdict.accuracy.complaint


def test_a_right_library_answers_another_text_in_another_way() -> None:
    verdict = LlmVerdict()
    hold(RightLibrary(), text(CONFIG.vocabulary, 33), TRUTH, verdict)
    assert verdict.right, verdict


def test_a_library_with_another_number_of_logits_is_wrong() -> None:
    class ShortLibrary(RightLibrary):
        def step(self, step: Step, tokens: Any) -> list[Any]:
            logits, *layers = super().step(step, tokens)
            return [logits[:, :100], *layers]

    verdict = verify(TEST, ShortLibrary(), TRUTH)
    assert verdict.accuracy
    assert "output 0 has shape (32, 100), expected (32, 128)" in verdict.accuracy.complaint


def test_every_depth_of_decode_is_judged_beyond_a_page() -> None:
    library = RightLibrary()
    assert verify(llm_test("tg@d0"), library, TRUTH).right
    assert library.asked == [*[("decode_layers", 1)] * 17, ("decode", 1)]
    assert library.length == 17 > PAGE


@dataclass
class DriftingLibrary(RightLibrary):
    """Is off by twice what rounding does, at every position."""

    def step(self, step: Step, tokens: Any) -> list[Any]:
        begin = self.length
        logits, *layers = super().step(step, tokens)
        spread, rng = TRUTH.spreads[0], np.random.default_rng(begin)
        rows = slice(self.length - len(logits), self.length)
        noise = rng.standard_normal(logits.shape) * spread.columns * spread.positions[rows, None]
        return [(logits + 2 * noise).astype(np.float32), *layers]


@pytest.mark.parametrize("test", ["tg@d0", "pp32"])
def test_what_one_step_may_be_off_by_many_may_not(test: str) -> None:
    verdict = verify(llm_test(test), DriftingLibrary(), TRUTH)
    assert verdict.accuracy
    assert "times what rounding does (at most 1." in verdict.accuracy.complaint
    assert 1.5 < verdict.multiple < 2.5
    assert TRUTH.judge(DriftingLibrary().step(PREFILL, TEXT[:1])[0], 0).right
