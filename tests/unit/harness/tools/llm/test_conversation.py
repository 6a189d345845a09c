"""How long a step may be, and a prompt that takes several."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from device_runner.failures import RigFailure
from harness.tools.llm.conversation import Conversation, StepTrial, TimedPrompt, TimedStep
from harness.tools.llm.network import DECODE, PREFILL_AGAIN


@dataclass
class Machine:
    """Takes a ms for each token of the last step, and `least_ms` at least; launches a kernel for each token."""

    least_ms: float = 0.0
    timeout_s: float = 1.0
    steps: list[int] = field(default_factory=list)
    """Tokens of each step that was taken."""
    removed: list[int] = field(default_factory=list)
    changes: list[tuple[Any, ...]] = field(default_factory=list)
    """Functions of the runtime that were called, with what they took besides the state."""

    def shape(self, extent: int) -> int:
        return extent

    def call(self, function: str, *sizes: int) -> str:
        return function

    def runtime(self, function: str, *arguments: Any) -> None:
        self.removed += arguments[2:] if function.endswith("popn") else ()
        self.changes.append((function.removeprefix("vm.builtin."), *arguments[1:]))

    def invoke(self, function: str, tokens: Any, *rest: Any) -> list[Any]:
        self.steps.append(len(tokens))
        return [np.zeros((1, 4))]

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        return [max(float(self.steps[-1]), self.least_ms)] * repeat

    device_ms = wall_ms

    def launches(self, repeat: int, *, timeout_s: float) -> list[list[int]]:
        return [[0] * self.steps[-1]] * repeat


@pytest.fixture
def conversation() -> Conversation:
    made: Any = Machine()
    return Conversation(made, None)


@pytest.mark.parametrize(("ms", "tokens"), [(0.0, 512), (62.5, 512), (63.0, 256), (500.0, 64), (1e9, 1)])
def test_each_token_takes_its_share_of_a_trial(ms: float, tokens: int) -> None:
    assert StepTrial(32, 0.0, ms).longest_step(1000.0, 512) == tokens


@pytest.mark.parametrize(
    ("least_ms", "tried", "chunk"),
    [(0.0, [2, 32], 512), (100.0, [2, 32], 256), (900.0, [2, 4, 8, 16, 32], 32), (1001.0, [2], 1)],
)
def test_no_step_is_tried_that_may_take_longer_than_the_watchdog_allows(
    least_ms: float, tried: list[int], chunk: int
) -> None:
    machine: Any = Machine(least_ms)
    conversation = Conversation(machine, None)
    first, largest = conversation.choose_chunk()
    assert machine.steps == tried
    assert (first.tokens, largest.tokens, largest.ms) == (2, tried[-1], max(float(tried[-1]), least_ms))
    assert (conversation.chunk, conversation.length) == (chunk, 0)


@pytest.mark.parametrize(("chunk", "tried"), [(8, [2, 8]), (1, [1])])
def test_a_library_with_shorter_steps_than_a_trial_gets_none_that_is_longer(chunk: int, tried: list[int]) -> None:
    machine: Any = Machine()
    conversation = Conversation(machine, None, chunk=chunk)
    conversation.choose_chunk()
    assert machine.steps == tried
    assert conversation.chunk == chunk


def test_a_sliding_window_is_there_for_each_text() -> None:
    machine: Any = Machine()
    Conversation(machine, None, window=(256, 4)).restart()
    begin = [("kv_state_add_sequence", 0), ("attention_kv_cache_enable_sliding_window_for_seq", 0, 256, 4)]
    assert machine.changes == [*begin, ("kv_state_clear",), *begin]


def test_a_pinned_step_needs_no_trial_beyond_the_first(conversation: Conversation) -> None:
    first, largest = conversation.choose_chunk(48)
    assert first is largest
    assert conversation.chunk == 48


def test_a_prompt_that_is_longer_than_a_step_is_timed_as_the_sum_of_its_steps(conversation: Conversation) -> None:
    conversation.chunk, conversation.length = 16, 5
    timed = conversation.timed_answer(PREFILL_AGAIN, np.arange(40))
    assert isinstance(timed, TimedPrompt)
    assert timed.wall_ms(3, timeout_s=1) == timed.device_ms(3, timeout_s=1) == [40.0] * 3
    assert [len(launches) for launches in timed.launches(2, timeout_s=1)] == [40, 40]
    machine: Any = conversation.machine
    assert (max(machine.steps), conversation.length) == (16, 5)
    assert machine.removed == [40] * 3


def test_a_probe_that_fails_leaves_the_cache_as_it_was(conversation: Conversation, monkeypatch: Any) -> None:
    conversation.chunk, conversation.length = 16, 5

    def unseen(self: TimedStep, repeat: int, *, timeout_s: float) -> None:
        if self.conversation.length > 5:
            raise RigFailure("without the probe")

    ended: list[TimedStep] = []

    def end(self: TimedStep) -> None:
        ended.append(self)

    monkeypatch.setattr(TimedStep, "launches", unseen)
    monkeypatch.setattr(TimedStep, "end", end)
    timed = conversation.timed_answer(PREFILL_AGAIN, np.arange(40))
    with pytest.raises(RigFailure):
        timed.launches(2, timeout_s=1)
    assert (conversation.length, len(ended)) == (5, 2)


@pytest.mark.parametrize(("step", "count"), [(PREFILL_AGAIN, 16), (DECODE, 1)])
def test_what_a_step_takes_is_timed_at_once(step: Any, count: int, conversation: Conversation) -> None:
    conversation.chunk = 16
    timed = conversation.timed_answer(step, np.arange(count))
    assert type(timed) is TimedStep
    assert timed.wall_ms(2, timeout_s=1) == [float(count)] * 2
