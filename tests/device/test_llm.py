"""A language model's library on the virtual phone: right ones are right, and each fault is caught."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from device_runner.adb_device import AdbDevice
from device_runner.device import Loadable
from device_runner.store import sha256_of
from harness.compile.artifacts.compile import export
from harness.compile.compiler.compat import tir_function
from harness.compile.paths.base import Edits
from harness.tools.llm.build import weights_folder
from harness.tools.llm.cases import LlmTest
from harness.tools.llm.cases import test_of as llm_test
from harness.tools.llm.config import LlmConfig, RopeScaling
from harness.tools.llm.conversation import Conversation
from harness.tools.llm.judge import LlmTruth, text
from harness.tools.llm.lowering import MLC, build_executable, target_of
from harness.tools.llm.network import build_module
from harness.tools.llm.quirks import QUIRKS
from harness.tools.llm.run import load_library
from harness.tools.llm.verify import LlmVerdict, invariants, verify
from harness.tools.llm.weights import FORMATS, SeededWeights

pytestmark = [pytest.mark.rest, pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]
CONFIG = LlmConfig(2, 64, 4, 2, 32, 96, 128)
TIMEOUT_S = 300.0
MERGE = QUIRKS[:1]


@dataclass(frozen=True)
class Fault:
    """A change of the text of some kernels, as a workaround would make it."""

    kernels: str
    old: str
    new: str
    test: str
    """The test that has to catch it."""
    complaint: str
    form: str = "float32"
    id: str = "fault"

    @property
    def edits(self) -> Edits:
        return Edits(model=self.applied)

    def applied(self, mod: Any) -> Any:
        changed = 0
        for name, function in mod.functions_items():
            if re.fullmatch(self.kernels, str(name.name_hint)):
                source = function.script()
                assert self.old in source
                made = tir_function(source.replace(self.old, self.new))
                mod[name] = made.with_attr(dict(function.attrs.items()))
                changed += 1
        assert changed
        return mod


FAULTS = {
    "rope": Fault(
        "fused_rope", "T.float32(-1.0)", "T.float32(1.0)", "pp32", "prefill of 32 tokens at 0: layer 0 is off"
    ),
    "GQA index": Fault(
        "batch_decode_paged_kv",
        "pages[page_no, 0, by,",
        "pages[page_no, 0, 1 - by,",
        "tg@d32",
        "17 decodes after 32 tokens: layer 0 is off",
    ),
    "dequantise": Fault("dequantize.*", "T.float32(7.0)", "T.float32(8.0)", "pp32", "layer 0 is off", form="q4f32_1"),
    "page table": Fault(
        "tir_kv_cache_transpose_append",
        "pages[position // 16, 1,",
        "pages[0, 1,",
        "tg@d32",
        "after 32 tokens: layer 0 is off",
    ),
    "border of a page": Fault(
        "tir_kv_cache_transpose_append",
        "0, vh, position % 16,",
        "0, vh, T.max(position % 16, T.Select(position > 0, 1, 0)),",
        "tg@d0",
        "(at most 6) at position 16",
    ),
    "chunk within a page": Fault(
        "tir_kv_cache_transpose_append",
        "position: T.int32 = position_map[vgpos]",
        "position: T.int32 = T.if_then_else(ntoken > 1, position_map[0] // 16 * 16 + vgpos, position_map[vgpos])",
        "chunks",
        "layer 0 is off",
    ),
    "position of a chunk": Fault(
        "fused_rope",
        'T.Cast("float32", position_map[s])',
        'T.Cast("float32", T.if_then_else(seq_len > 1, s, position_map[s]))',
        "chunks",
        "prefill of 26 tokens at 26: layer 0 is off",
    ),
    "causal mask": Fault(
        "batch_prefill_ragged_kv",
        "+ row_ + 1, L_kv",
        "+ row_ + 2, L_kv",
        "pp32",
        "prefill of 32 tokens at 0: layer 0 is off",
    ),
    "scale of scores": Fault(
        "batch_decode_paged_kv",
        "sm_scale * T.float32(1.4426950408889634)",
        "sm_scale",
        "tg@d0",
        "(at most 6) at position 1",
    ),
}


@cache
def network(config: LlmConfig, form: str) -> Any:
    """Return the module: to write it takes TVM seconds."""
    return build_module(config, FORMATS[form], target_of(None))[0]


class Libraries:
    """Builds libraries and opens conversations with them, in a single session."""

    def __init__(self, device: AdbDevice, folder: Path) -> None:
        self.folder, self.session_of = folder, device.session({}, timeout_s=TIMEOUT_S)
        self.session: Any = None

    def conversation(self, name: str, form: str, workarounds: Any, config: LlmConfig = CONFIG) -> Conversation:
        library = self.folder / name.replace(" ", "_") / "lib.so"
        library.parent.mkdir()
        export(
            build_executable(network(config, form).clone(), target_of(None), MLC, workarounds, lambda _: None),
            library,
            None,
        )
        folder = weights_folder(SeededWeights(config), FORMATS[form], self.folder)
        return load_library(self.session, Loadable(library, sha256_of(library), 1), folder, TIMEOUT_S)


@pytest.fixture
def libraries(device: AdbDevice, tmp_path: Path) -> Iterator[Libraries]:
    made = Libraries(device, tmp_path)
    with made.session_of as made.session:
        yield made


def judged(conversation: Conversation, test: str, form: str = "float32", config: LlmConfig = CONFIG) -> LlmVerdict:
    return verify(llm_test(test), conversation, LlmTruth.compute(SeededWeights(config), FORMATS[form], 128))


def test_a_right_library_is_right_at_every_step(libraries: Libraries) -> None:
    conversation = libraries.conversation("right", "float32", MERGE)
    for test in ("pp32", "tg@d0", "tg@d32", "pp32@d32", "chunks"):
        verdict = judged(conversation, test)
        assert verdict.right, verdict
        assert verdict.divergence < 1e-9
    assert len(verdict.invariants) == 4


OTHERS = {
    "qwen": LlmConfig(2, 224, 7, 1, 32, 352, 1003, 1e6, 1e-6, qkv_bias=True, tied=True),
    "qwen3": LlmConfig(1, 128, 4, 2, 64, 256, 1003, 1e6, 1e-6, head_norms=True, tied=True),
    "llama 3": LlmConfig(1, 256, 4, 2, 128, 384, 1056, 5e5, scaling=RopeScaling(32.0, 1.0, 4.0, 64)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", OTHERS)
def test_other_networks_are_right_in_4_bits(name: str, libraries: Libraries) -> None:
    conversation = libraries.conversation(name, "q4f32_1", QUIRKS, OTHERS[name])
    for test in ("pp33", "tg@d32", "chunks"):
        verdict = judged(conversation, test, "q4f32_1", OTHERS[name])
        assert verdict.right, verdict


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_the_judge_catches_a_fault(name: str, libraries: Libraries) -> None:
    fault = FAULTS[name]
    verdict = judged(libraries.conversation(name, fault.form, [*MERGE, fault]), fault.test, fault.form)
    assert not verdict.right
    assert verdict.accuracy
    assert fault.complaint in verdict.accuracy.complaint


@pytest.mark.long
def test_judge_and_invariant_catch_the_merge_without_a_barrier(libraries: Libraries) -> None:
    conversation = libraries.conversation("merge", "float32", [])
    verdict = judged(conversation, "chunks")
    assert verdict.accuracy
    assert "prefill of 26 tokens at 26: layer 0 is off" in verdict.accuracy.complaint
    conversation.restart()
    tokens = text(CONFIG.vocabulary, 128)
    name, chunked, whole = next(invariants(conversation, tokens, conversation.score(tokens)))
    assert name == "in chunks = at once"
    assert abs(chunked - whole).max() > 0.01 * abs(whole).max()


DEEP = LlmConfig(1, 64, 2, 1, 32, 64, 64)


@pytest.mark.long
def test_steps_behind_more_tokens_than_the_usual_cache_holds_are_right(libraries: Libraries) -> None:
    usual = libraries.conversation("deep", "float32", MERGE, DEEP)
    conversation = Conversation(usual.machine, usual.weights, room=2304)
    truth = LlmTruth.compute(SeededWeights(DEEP), FORMATS["float32"], 2132)
    for test in (LlmTest("pp32@d2100", 32, 2100), LlmTest("tg@d2100", 1, 2100)):
        verdict = verify(test, conversation, truth)
        assert verdict.right, verdict
        assert verdict.divergence < 1e-9
