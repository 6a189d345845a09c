"""A text in the cache of a library on a device: steps forward, steps taken back, and steps that are timed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from device_runner.deadline import Deadline
from device_runner.device import Array, Launch, Loadable
from device_runner.failures import DeviceFull
from device_runner.session.rpc_session import RpcProgram, RpcSession, outputs_of
from device_runner.store import sha256_of
from harness.compile.compiler.compat import tvm
from harness.tools.llm.config import CONTEXT
from harness.tools.llm.network import CHUNK, CREATE, PAGE, PREFILL, PREFILL_AGAIN, SCORE, Step

Sample = TypeVar("Sample", float, list[Launch])
RPC_MASK = 128
"""What TVM's RPC adds to the type of a device of another process."""
LINK_SCRIPT = 'mkdir -p "$0" && cd "$0" && while [ "$1" ]; do ln -sf "$1" "$2" || exit 1; shift 2; done'
"""Arguments: the folder, then path and name of each file."""
SEQUENCE = 0
MOST_DECODES = 128
"""Most decodes of a timed call, by which the depth grows."""
FIRST_TOKENS, TRIAL_TOKENS = 2, 32
"""Tokens of the first and of the largest step that is tried. TVM takes a single token by the kernel of decode."""
WATCHDOG_MS = 2000.0
"""Adreno's driver ends what keeps the GPU busy for so long."""
LONGEST_STEP_MS = WATCHDOG_MS / 2
"""Longest estimated time of a step: on a long cache it takes up to twice the time of one on an empty cache."""


class Machine(RpcProgram):
    """A library with functions that share a state on the device. Its timers call the function of the last `invoke`."""

    weights_bytes = 0
    """Size of the weights that were brought."""

    def __init__(self, session: RpcSession, loadable: Loadable, timeout_s: float) -> None:
        """Push (by hash), load and initialise a library. Each later call has as much time."""
        deadline = Deadline(timeout_s)
        session.probe.count(deadline)
        pushed = session.bring(loadable.library, loadable.sha256, deadline)
        super().__init__(session, loadable, pushed, timeout_s=deadline.remaining_s)
        self.timeout_s = timeout_s

    def runtime(self, function: str, *arguments: Any) -> Any:
        """Call a global function of the runtime, such as one that changes a state."""
        with self._session.calling(function, self.timeout_s):
            return self._session.remote.get_function(function)(*arguments)

    def parameters(self, files: Mapping[str, Path], names: Sequence[str]) -> Any:
        """Push a folder of TVM's tensor cache by hash, and return its tensors of these names on the device."""
        deadline = Deadline(self.timeout_s)
        folder = bring_folder(self._session, files, deadline)
        self.weights_bytes = sum(file.stat().st_size for file in files.values())
        with self._session.calling("loading weights", deadline.remaining_s):
            function = self._session.remote.get_function
            function("vm.builtin.tensor_cache.load")(folder, self._device.dlpack_device_type() % RPC_MASK, 0)
            parameters = function("vm.builtin.param_array_from_cache_by_name_unpacked")(*names)
            function("vm.builtin.tensor_cache.clear")()
            return parameters

    def call(self, function: str, *arguments: Any) -> Any:
        """Call a function of the library with what is on the device, and return what stays there."""
        with self._session.calling(f"calling {function} of {self._loadable.library.name}", self.timeout_s):
            values = [tvm.runtime.tensor(a, self._device) if isinstance(a, np.ndarray) else a for a in arguments]
            return self._vm.module[function](*values)

    def shape(self, *extents: int) -> Any:
        """Return a shape on the device."""
        return self.runtime("ffi.Shape", *extents)

    def invoke(self, function: str, *arguments: Any, first: bool = False) -> list[Array]:
        """Call a function of the library with arrays, states and parameters; return its tensors, or the `first`."""
        with self._session.calling(f"running {function} of {self._loadable.library.name}", self.timeout_s):
            values = [tvm.runtime.tensor(a, self._host) if isinstance(a, np.ndarray) else a for a in arguments]
            self._vm.set_input(function, *values)
            self._vm.invoke_stateful(function)
            self._device.sync()
            self._loadable = replace(self._loadable, entry=function, host_entry=function)
            return outputs_of(self._vm.module, function, *[0] * first)


def bring_folder(session: RpcSession, files: Mapping[str, Path], deadline: Deadline) -> str:
    """Push files by hash; return a folder of the device in which they have these names."""
    hashes = {name: sha256_of(file) for name, file in files.items()}
    pushed = {name: session.bring(file, hashes[name], deadline).path for name, file in files.items()}
    digest = hashlib.sha256(" ".join(hashes.values()).encode()).hexdigest()
    folder = f"{session.transport.root}/folders/{digest[:24]}"
    links = [word for name, path in pushed.items() for word in (path, name)]
    answer = session.transport.shell(["sh", "-c", LINK_SCRIPT, folder, *links], timeout_s=deadline.remaining_s)
    if answer.code:
        raise DeviceFull(f"{session.transport.name} refuses the folder {folder}: {answer.stderr.strip()}")
    return folder


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
        self._state = self.machine.call(self.create, *sizes)
        self._begin()

    def _begin(self) -> None:
        self._change("kv_state_add_sequence", SEQUENCE)
        if self.window[0] > 0:
            self._change("attention_kv_cache_enable_sliding_window_for_seq", SEQUENCE, *self.window)
        self.length = 0

    def choose_chunk(self, pinned: int | None = None) -> tuple[StepTrial, StepTrial]:
        """Choose the longest step: the pinned one, or the longest that the device's watchdog allows.

        Returns the first step that was tried, and the largest. None is tried that may take longer than the watchdog
        allows, by the one before.
        """
        first = largest = self._try(min(FIRST_TOKENS, self.chunk))
        most = min(TRIAL_TOKENS, self.chunk)
        while not pinned and (tokens := largest.longest_step(WATCHDOG_MS, most)) > largest.tokens:
            largest = self._try(tokens)
        self.chunk = min(self.chunk, pinned or largest.longest_step(LONGEST_STEP_MS, CHUNK))
        return first, largest

    def _try(self, tokens: int) -> StepTrial:
        started = time.perf_counter()
        timed = self.timed(PREFILL_AGAIN, np.zeros(tokens, np.int32))
        first_ms = 1e3 * (time.perf_counter() - started)
        ms = min(timed.wall_ms(2, timeout_s=self.machine.timeout_s))
        timed.end()
        return StepTrial(tokens, first_ms, ms)

    def step(self, step: Step, tokens: Array) -> list[Array]:
        """Take tokens; return logits (positions, vocabulary), and what leaves each layer if the step tells it."""
        outputs = self.machine.invoke(step.name, tokens.astype("int32"), self._state, self.weights)
        self.length += 0 if step.forgets else len(tokens)
        return [output.reshape(-1, output.shape[-1]) for output in outputs]

    def parts(self, tokens: Array) -> list[Array]:
        """Return tokens in as few steps as there may be."""
        return [tokens[start : start + self.chunk] for start in range(0, len(tokens), self.chunk)]

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

    def timed_answer(self, step: Step, tokens: Array) -> TimedStep | TimedPrompt:
        """Return what takes these tokens, to be timed: a step, or as many as a long prompt needs."""
        return self.timed(step, tokens) if len(tokens) <= self.chunk else TimedPrompt(self, tokens)

    def forget(self, count: int) -> None:
        """Take the last tokens out of the cache."""
        if count:
            self._change("kv_state_popn", SEQUENCE, count)
            self.length -= count

    def restart(self) -> None:
        """Begin with an empty cache."""
        self._change("kv_state_clear")
        self._begin()

    def begin(self, tokens: Array, depth: int) -> Array:
        """Begin with the first `depth` tokens of a text in the cache; return the others."""
        self.restart()
        if depth:
            self.answer(PREFILL, tokens[:depth])
        return tokens[depth:]

    def _change(self, function: str, *arguments: Any) -> None:
        self.machine.runtime(f"vm.builtin.{function}", self._state, *arguments)


@dataclass
class TimedStep:
    """The step that was just taken, as core's timing takes a program: each sample is one step, on the same depth.

    A decode makes the cache longer by a token in each sample, as applications do; what a call added is taken out.
    """

    conversation: Conversation
    step: Step
    tokens: int

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Return samples to the logits in host memory, by the device's own clock."""
        return self._samples(self.conversation.machine.wall_ms, repeat, timeout_s)

    def device_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Return the sum of kernel times."""
        return self._samples(self.conversation.machine.device_ms, repeat, timeout_s)

    def launches(self, repeat: int, *, timeout_s: float) -> list[list[Launch]]:
        """Return the kernels of each of so many steps. Raises RigFailure where they cannot be watched."""
        launches = self.conversation.machine.launches(repeat, timeout_s=timeout_s)
        self._take_back(repeat + 1)
        return launches

    def end(self) -> None:
        """Do nothing: each call ended its step."""

    def _samples(self, sample: Callable[..., list[float]], repeat: int, timeout_s: float) -> list[float]:
        samples: list[float] = []
        while (left := repeat - len(samples)) > 0:
            count = left if self.step.forgets else min(left, MOST_DECODES)
            samples += sample(count, timeout_s=timeout_s)
            self._take_back(count + 1)  # one call is not timed
        return samples

    def _take_back(self, calls: int) -> None:
        if not self.step.forgets:
            self.conversation.length += calls
            self.conversation.forget(calls)


@dataclass
class TimedPrompt:
    """A prompt that takes several steps: a sample is the sum of theirs, each on a cache that holds those before."""

    conversation: Conversation
    prompt: Array

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Return the sums of samples."""
        return [sum(steps) for steps in self._each(lambda step: step.wall_ms(repeat, timeout_s=timeout_s))]

    def device_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Return the sums of kernel times."""
        return [sum(steps) for steps in self._each(lambda step: step.device_ms(repeat, timeout_s=timeout_s))]

    def launches(self, repeat: int, *, timeout_s: float) -> list[list[Launch]]:
        """Return the kernels of all steps, of each of so many prompts."""
        prompts = self._each(lambda step: step.launches(repeat, timeout_s=timeout_s))
        return [[launch for step in steps for launch in step] for steps in prompts]

    def end(self) -> None:
        """Do nothing: each step was ended."""

    def _each(self, sample: Callable[[TimedStep], Sequence[Sample]]) -> list[tuple[Sample, ...]]:
        """Sample each step, and leave the cache as it was, also after a probe that could not."""
        samples, depth = [], self.conversation.length
        try:
            for part in self.conversation.parts(self.prompt):
                step = self.conversation.timed(PREFILL_AGAIN, part)
                try:
                    samples.append(sample(step))
                finally:
                    step.end()
                self.conversation.answer(PREFILL, part)
        finally:
            self.conversation.forget(self.conversation.length - depth)
        return list(zip(*samples, strict=True))
