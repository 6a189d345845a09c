"""How long a step may be, and a prompt that takes several."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from device_runner.failures import RigFailure
from harness.tools.llm.conversation import Conversation, TimedPrompt, TimedStep, longest_step, timed_answer
from harness.tools.llm.network import DECODE, PREFILL_AGAIN


@dataclass
class Machine:
    """Takes a ms for each token of the last step, and launches a kernel for each."""

    tokens: int = 0
    longest: int = 0
    removed: list[int] = field(default_factory=list)

    def state(self, function: str, sizes: Any, *, timeout_s: float) -> str:
        return function

    def runtime(self, function: str, *arguments: Any, timeout_s: float) -> None:
        self.removed += arguments[2:] if function.endswith("popn") else ()

    def invoke(self, function: str, tokens: Any, *rest: Any, timeout_s: float) -> list[Any]:
        self.tokens, self.longest = len(tokens), max(self.longest, len(tokens))
        return [np.zeros((1, 4))]

    def function_ms(self, function: str, repeat: int, *, timeout_s: float, kernels: bool) -> list[float]:
        return [float(self.tokens)] * repeat

    def function_launches(self, function: str, repeat: int, *, timeout_s: float) -> list[list[int]]:
        return [[0] * self.tokens] * repeat


@pytest.fixture
def conversation() -> Conversation:
    made: Any = Machine()
    return Conversation(made, None, 1.0)


@pytest.mark.parametrize(("trial_ms", "tokens"), [(0.0, 512), (62.5, 512), (63.0, 256), (500.0, 64), (1e9, 16)])
def test_the_longest_step_takes_half_of_the_watchdogs_time(trial_ms: float, tokens: int) -> None:
    assert longest_step(trial_ms) == tokens


def test_the_longest_step_follows_from_a_small_one_on_the_device(conversation: Conversation) -> None:
    first_ms, trial_ms = conversation.choose_chunk()
    assert first_ms >= 0
    assert trial_ms == 32.0
    assert (conversation.chunk, conversation.length) == (512, 0)


def test_a_prompt_that_is_longer_than_a_step_is_timed_as_the_sum_of_its_steps(conversation: Conversation) -> None:
    conversation.chunk, conversation.length = 16, 5
    timed = timed_answer(conversation, PREFILL_AGAIN, np.arange(40))
    assert isinstance(timed, TimedPrompt)
    assert timed.wall_ms(3, timeout_s=1) == timed.device_ms(3, timeout_s=1) == [40.0] * 3
    assert [len(launches) for launches in timed.launches(2, timeout_s=1)] == [40, 40]
    machine: Any = conversation.machine
    assert (machine.longest, conversation.length) == (16, 5)
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
    timed = timed_answer(conversation, PREFILL_AGAIN, np.arange(40))
    with pytest.raises(RigFailure):
        timed.launches(2, timeout_s=1)
    assert (conversation.length, len(ended)) == (5, 2)


@pytest.mark.parametrize(("step", "count"), [(PREFILL_AGAIN, 16), (DECODE, 1)])
def test_what_a_step_takes_is_timed_at_once(step: Any, count: int, conversation: Conversation) -> None:
    conversation.chunk = 16
    timed = timed_answer(conversation, step, np.arange(count))
    assert type(timed) is TimedStep
    assert timed.wall_ms(2, timeout_s=1) == [float(count)] * 2
