"""A text in the cache of a library on a device: steps forward, and steps taken back."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from device_runner.failures import RigFailure
from harness.tools.llm.config import CONTEXT
from harness.tools.llm.network import CHUNK, CREATE, PAGE, PREFILL, PREFILL_AGAIN, SCORE, Step

if TYPE_CHECKING:
    from device_runner.device import Array, Launch
    from harness.tools.llm.machine import Machine

    Sample = TypeVar("Sample", float, list[Launch])

SEQUENCE = 0
MOST_DECODES = 128
"""Most decodes of a timed call, by which the depth grows."""
FIRST_TOKENS, TRIAL_TOKENS = 2, 32
"""Tokens of the first and of the largest step that is tried. TVM takes a single token by the kernel of decode."""
WATCHDOG_MS = 2000.0
"""Adreno's driver ends what keeps the GPU busy for so long."""
LONGEST_STEP_MS = WATCHDOG_MS / 2
"""Longest estimated time of a step: on a long cache it takes up to twice the time of one on an empty cache."""


class StepTrial(NamedTuple):
    """A small step that was tried on the device."""

    tokens: int
    first_ms: float
    """The first time, by this host's clock: the device compiles kernels."""
    ms: float
    """A later time, by the device's clock."""

    def longest_step(self, limit_ms: float, most: int) -> int:
        """Return the most tokens, a power of two, that take no longer if each takes its share of this step."""
        while most > 1 and most * self.ms > self.tokens * limit_ms:
            most //= 2
        return most


@dataclass
class Conversation:
    """One sequence of tokens."""

    machine: Machine
    weights: Any
    timeout_s: float
    length: int = 0
    """Tokens in the cache."""
    chunk: int = CHUNK
    """Most tokens of a step."""
    create: str = CREATE
    """The function that makes the cache."""
    room: int = CONTEXT
    """Tokens that the cache has room for."""
    window: tuple[int, int] = (-1, 0)
    """Tokens of a sliding window, and those at the beginning that it keeps; -1 without one."""
    _state: Any = field(init=False)

    def __post_init__(self) -> None:
        sizes = map(self.machine.shape, (1, self.room, self.chunk, PAGE, int(self.window[0] > 0)))
        self._state = self.machine.call(self.create, *sizes, timeout_s=self.timeout_s)
        self._begin()

    def _begin(self) -> None:
        """Begin a text in an empty cache."""
        self._change("kv_state_add_sequence", SEQUENCE)
        if self.window[0] > 0:
            self._change("attention_kv_cache_enable_sliding_window_for_seq", SEQUENCE, *self.window)
        self.length = 0

    def choose_chunk(self, pinned: int | None = None) -> tuple[StepTrial, StepTrial]:
        """Choose the longest step: the pinned one, or the longest that the device's watchdog allows.

        Returns the first step that was tried, and the largest. None is tried that may take longer than the watchdog
        allows, by the one before.
        """
        first = largest = self._try(FIRST_TOKENS)
        most = min(TRIAL_TOKENS, self.chunk)
        while not pinned and (tokens := largest.longest_step(WATCHDOG_MS, most)) > largest.tokens:
            largest = self._try(tokens)
        self.chunk = min(self.chunk, pinned or largest.longest_step(LONGEST_STEP_MS, CHUNK))
        return first, largest

    def _try(self, tokens: int) -> StepTrial:
        started = time.perf_counter()
        timed = self.timed(PREFILL_AGAIN, np.zeros(tokens, np.int32))
        first_ms = 1e3 * (time.perf_counter() - started)
        ms = min(timed.wall_ms(2, timeout_s=self.timeout_s))
        timed.end()
        return StepTrial(tokens, first_ms, ms)

    def step(self, step: Step, tokens: Array) -> list[Array]:
        """Take tokens; return logits (positions, vocabulary), and what leaves each layer if the step tells it."""
        arguments = (tokens.astype("int32"), self._state, self.weights)
        outputs = self.machine.invoke(step.name, *arguments, timeout_s=self.timeout_s)
        self.length += 0 if step.forgets else len(tokens)
        return [output.reshape(-1, output.shape[-1]) for output in outputs]

    def parts(self, tokens: Array) -> list[Array]:
        """Return tokens in as few steps as there may be."""
        return [tokens[start : start + self.chunk] for start in range(0, len(tokens), self.chunk)]

    def fill(self, tokens: Array) -> None:
        """Take tokens in as few steps as there may be."""
        if len(tokens):
            self.answer(PREFILL, tokens)

    def score(self, tokens: Array) -> Array:
        """Take tokens in as few steps as there may be; return the logits of every position."""
        return np.concatenate([self.step(SCORE, part)[0] for part in self.parts(tokens)])

    def answer(self, step: Step, tokens: Array) -> Array:
        """Take tokens in as few steps as there may be; return the logits of the last one."""
        return [self.step(step, part)[0] for part in self.parts(tokens)][-1]

    def timed(self, step: Step, tokens: Array) -> TimedStep:
        """Take tokens, and return the step to be timed."""
        self.step(step, tokens)
        return TimedStep(self, step, len(tokens))

    def forget(self, count: int) -> None:
        """Take the last tokens out of the cache."""
        if count:
            self._change("kv_state_popn", SEQUENCE, count)
            self.length -= count

    def restart(self) -> None:
        """Begin with an empty cache."""
        self._change("kv_state_clear")
        self._begin()

    def _change(self, function: str, *arguments: int) -> None:
        name = f"vm.builtin.{function}"
        self.machine.runtime(name, self._state, *arguments, timeout_s=self.timeout_s)


@dataclass
class TimedStep:
    """A step as core's timing takes a program: each sample is one step, on a cache of the same depth.

    A decode makes the cache longer by a token in each sample, as applications do; what a call added is taken out.
    """

    conversation: Conversation
    step: Step
    tokens: int

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Return samples to the logits in host memory, by the device's own clock."""
        return self.samples(repeat, timeout_s, kernels=False)

    def device_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Return the sum of kernel times."""
        return self.samples(repeat, timeout_s, kernels=True)

    def launches(self, repeat: int, *, timeout_s: float) -> list[list[Launch]]:
        """Return the kernels of each of so many steps. Raises RigFailure where they cannot be watched."""
        launches = self.conversation.machine.function_launches(self.step.name, repeat, timeout_s=timeout_s)
        self._take_back(repeat + 1)
        return launches

    def batches(self, size: int, repeat: int, *, timeout_s: float) -> tuple[list[float], list[float]]:
        """Raise RigFailure: each step waits for its answer."""
        raise RigFailure("steps of a language model are not timed in batches")

    def end(self) -> None:
        """Do nothing: each call ended its step."""

    def samples(self, repeat: int, timeout_s: float, *, kernels: bool) -> list[float]:
        """Return samples of its `kernels`, or of all."""
        samples: list[float] = []
        while (left := repeat - len(samples)) > 0:
            count = left if self.step.forgets else min(left, MOST_DECODES)
            timed = self.conversation.machine.function_ms(self.step.name, count, timeout_s=timeout_s, kernels=kernels)
            samples += timed
            self._take_back(count + 1)  # one call is not timed
        return samples

    def _take_back(self, calls: int) -> None:
        if not self.step.forgets:
            self.conversation.length += calls
            self.conversation.forget(calls)


class TimedPrompt(TimedStep):
    """A prompt that takes several steps: a sample is the sum of theirs, each on a cache that holds those before."""

    def __init__(self, conversation: Conversation, prompt: Array) -> None:
        super().__init__(conversation, PREFILL_AGAIN, len(prompt))
        self._depth, self._parts = conversation.length, conversation.parts(prompt)

    def samples(self, repeat: int, timeout_s: float, *, kernels: bool) -> list[float]:
        """Return the sums of samples."""
        return [sum(steps) for steps in self._each(lambda step: step.samples(repeat, timeout_s, kernels=kernels))]

    def launches(self, repeat: int, *, timeout_s: float) -> list[list[Launch]]:
        """Return the kernels of all steps, of each of so many prompts."""
        prompts = self._each(lambda step: step.launches(repeat, timeout_s=timeout_s))
        return [[launch for step in steps for launch in step] for steps in prompts]

    def _each(self, sample: Callable[[TimedStep], Sequence[Sample]]) -> list[tuple[Sample, ...]]:
        """Sample each step, and leave the cache as it was, also after a probe that could not."""
        samples = []
        try:
            for part in self._parts:
                step = self.conversation.timed(PREFILL_AGAIN, part)
                try:
                    samples.append(sample(step))
                finally:
                    step.end()
                self.conversation.fill(part)
        finally:
            self.conversation.forget(self.conversation.length - self._depth)
        return list(zip(*samples, strict=True))


def timed_answer(conversation: Conversation, step: Step, tokens: Array) -> TimedStep:
    """Return what takes these tokens, to be timed: a step, or as many as a long prompt needs."""
    return conversation.timed(step, tokens) if len(tokens) <= conversation.chunk else TimedPrompt(conversation, tokens)
