"""A library that mlc-llm compiled: what it says of itself, and a conversation with it.

Sources: mlc-llm, cpp/serve/function_table.cc (functions), interface/compile.py (`_metadata`). numpy judges a network
that is ours as well; answers of another one are held to each other.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from device_runner.deadline import Deadline
from device_runner.device import Array
from device_runner.failures import Unsupported
from device_runner.runtimes.phone.elf import BadElf, read_elf
from harness.base.failures import CompileFailure, reason_alone
from harness.compile.artifacts.artifact import LIBRARY, CompileResult
from harness.tools.llm.config import CONTEXT
from harness.tools.llm.conversation import SEQUENCE, Conversation, Machine, TimedStep
from harness.tools.llm.folders import MlcFolder
from harness.tools.llm.foreign import Foreign, StoredTensor, read_object
from harness.tools.llm.network import CHUNK, SCORE, Step

CREATE = "create_tir_paged_kv_cache"
"""What makes the cache. That of FlashInfer is CUDA's."""
MOST_BATCHES = 64
"""Most batches that the probe times in a call."""
_COMPILE = "`mlc_llm compile --device android:adreno-so --output LIB.so` makes one for phones"


class WantedWeight(Foreign):
    """A weight that the library takes."""

    name: str
    shape: tuple[int | str, ...]
    """Extents; one that only the weights know has a name, such as `vocab_size`."""
    dtype: str

    def fits(self, stored: StoredTensor) -> bool:
        """Return whether a stored weight is this one."""
        extents = zip(self.shape, stored.shape, strict=False)
        alike = (self.dtype, len(self.shape)) == (stored.dtype, len(stored.shape))
        return alike and all(isinstance(want, str) or want == has for want, has in extents)


class Metadata(Foreign):
    """What a library that can be run here says of itself: it has one shard and a cache of keys and values."""

    context_window_size: int = -1
    """Most tokens in the cache; -1 with a sliding window."""
    sliding_window_size: int = -1
    attention_sink_size: int = -1
    """First tokens that a sliding window keeps; -1 for none."""
    prefill_chunk_size: int = Field(gt=0)
    tensor_parallel_shards: Literal[1] = 1
    pipeline_parallel_stages: Literal[1] = 1
    kv_state_kind: Literal["kv_cache"] = "kv_cache"
    params: tuple[WantedWeight, ...] = Field(min_length=1)

    @property
    def room(self) -> int:
        """Tokens of the longest text in which each sees all before it, up to `CONTEXT`."""
        limits = self.context_window_size, self.sliding_window_size
        return min([CONTEXT, *(limit for limit in limits if limit > 0)])


def take_library(job: dict[str, Any], out: Path) -> CompileResult:
    """Worker only: copy a library. Nothing of it is run here. Raises CompileFailure unless it is one for the device."""
    library, machine = Path(job["library"]), job["machine"]
    try:
        elf = read_elf(library)
    except BadElf as error:
        raise CompileFailure(f"{library} {error}", hint=_COMPILE) from error
    if elf.machine != machine:
        raise CompileFailure(f"{library} is for processor {elf.machine}, and the device has {machine}", hint=_COMPILE)
    shutil.copy(library, out / LIBRARY)
    return CompileResult(LIBRARY, 1, [], 1, [], {"buffer_bytes": job["buffer_bytes"]}, 0.0)


def open_conversation(machine: Machine, folder: MlcFolder, length: int) -> Conversation:
    """Bring the weights, and begin. Raises CompileFailure where the library and they are out of step.

    Raises Unsupported where a text of this length does not fit.
    """
    text = str(machine.call("_metadata"))
    try:
        metadata = Metadata.model_validate(read_object(text))
    except ValueError as error:
        usual = "a library of mlc-llm with one shard and a cache of keys and values"
        raise CompileFailure(f"the library's _metadata is not that of {usual}: {reason_alone(error)}") from error
    if length > metadata.room:
        why = f"a text of {length} tokens does not fit: mlc-llm compiled the library for {metadata.room}"
        raise Unsupported(why, hint="take a shorter test, such as `--test pp32`")
    for parameter in metadata.params:
        stored = folder.weights.get(parameter.name)
        if stored is None or not parameter.fits(stored):
            has = f"{stored.dtype} {list(stored.shape)}" if stored else "no such weight"
            wants = f"{parameter.name} as {parameter.dtype} {list(parameter.shape)}"
            hint = "convert the weights and compile the library with one version of mlc-llm"
            raise CompileFailure(f"the library takes {wants}, and {folder.place} has {has}", hint=hint)
    weights = machine.parameters(folder.files(), [weight.name for weight in metadata.params])
    window = (metadata.sliding_window_size, max(metadata.attention_sink_size, 0))
    chunk = min(CHUNK, metadata.prefill_chunk_size)
    return MlcConversation(machine, weights, 0, chunk, CREATE, metadata.room, window)


@dataclass
class MlcConversation(Conversation):
    """One sequence of tokens in the cache of such a library."""

    def step(self, step: Step, tokens: Array) -> list[Array]:
        """Take tokens; return the logits of the last one. A step that forgets takes its tokens back."""
        logits = self.forward(step, tokens)
        self.end_forward(step, len(tokens))
        return [logits.reshape(1, -1)]

    def score(self, tokens: Array) -> Array:
        """Take tokens; return the logits of the last one: such a library gives no others."""
        return self.answer(SCORE, tokens)

    def forward(self, step: Step, tokens: Array) -> Array:
        """Take tokens, and leave the step open: what is called again is the same step."""
        machine = self.machine
        rows = machine.call("embed", tokens.astype("int32"), self.weights)
        embedded = machine.runtime("vm.builtin.reshape", rows, machine.shape(1, *map(int, rows.shape)))
        self._change("kv_state_begin_forward", machine.shape(SEQUENCE), machine.shape(len(tokens)))
        function = "decode" if step.tokens else "prefill"
        return machine.invoke(function, embedded, self._state, self.weights, first=True)[0]

    def end_forward(self, step: Step, count: int) -> None:
        """End a step of so many tokens, and take back what it is to forget."""
        self._change("kv_state_end_forward")
        self.length += count
        self.forget(count if step.forgets else 0)

    def timed(self, step: Step, tokens: Array) -> TimedStep:
        """Take tokens, and return the step to be timed, which stays open until its `end`."""
        self.forward(step, tokens)
        return OpenStep(self, step, len(tokens))


@dataclass
class OpenStep(TimedStep):
    """An open step, which can be called as often as one likes: each call computes the same again."""

    conversation: MlcConversation

    def wall_ms(self, repeat: int, *, timeout_s: float) -> list[float]:
        """Return samples without the copy of the logits to host memory. Raises RigFailure without the probe.

        TVM's own timer would not wait for a function that leaves its answer on the GPU.
        """
        deadline, samples = Deadline(timeout_s), list[float]()
        while (left := repeat - len(samples)) > 0:
            count = min(MOST_BATCHES, -(-left // 2))  # of each of two kinds, which are one for batches of a call
            for times in self.conversation.machine.batches(1, count, timeout_s=deadline.remaining_s):
                samples += times
        return samples[:repeat]

    def end(self) -> None:
        """Close the step."""
        self.conversation.end_forward(self.step, self.tokens)

    def _take_back(self, calls: int) -> None:
        """Do nothing: no call added anything."""
