"""Probes of TVM's defects in programs of language models."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from defects.presence import presence
from defects.sample import Probe
from harness.compile.paths.base import Workaround, edit_model
from harness.tools.llm.config import LlmConfig, RopeScaling
from harness.tools.llm.lowering import DEFAULT, MLC, build_executable, target_of
from harness.tools.llm.network import build_module
from harness.tools.llm.quirks import BARRIER, LET_QUIRK, MERGE
from harness.tools.llm.weights import FORMATS
from harness.tools.upstream.probe_answer import Presence, ProbeAnswer

ODD_WIDTH = 1003
"""A vocabulary whose 32nd part is odd."""


def _sample(vocabulary: int, form: str, scaling: RopeScaling | None = None) -> tuple[Any, Any]:
    """Return the module of a network of one layer, and the target."""
    target = target_of(None)
    mod, _ = build_module(LlmConfig(1, 64, 2, 1, 32, 64, vocabulary, scaling=scaling), FORMATS[form], target)
    return mod, target


def _merge(*applied: Workaround) -> ProbeAnswer:
    """Look for a barrier in the merge of two attention states."""
    mod = edit_model(_sample(64, "float32")[0], applied)
    merges = [function for name, function in mod.functions_items() if str(name.name_hint).startswith(MERGE)]
    if not merges:
        return ProbeAnswer(Presence.CANNOT_TELL, "the cache has no merge of attention states")
    bare = any(BARRIER not in function.script() for function in merges)
    return presence(bare, "all threads of a head read S[n, h], and one overwrites it, without a barrier")


def _odd_width(*applied: Workaround) -> ProbeAnswer:
    """Schedule a product whose transposed weights have an odd number of 32 columns."""
    return _build(MLC, applied, f"a head of {ODD_WIDTH} outputs is scheduled", *_sample(ODD_WIDTH, "q4f16_0"))


def _let(*applied: Workaround) -> ProbeAnswer:
    """Compile the rotations of Llama 3 by the default pipeline."""
    sample = _sample(64, "float32", RopeScaling(32.0, 1.0, 4.0, 8192))
    return _build(DEFAULT, applied, "rotations of Llama 3 are compiled", *sample)


def _build(pipeline: str, applied: Sequence[Workaround], built: str, mod: Any, target: Any) -> ProbeAnswer:
    """Build a module: the defect is present if TVM raises, and else the answer says what was `built`."""
    try:
        build_executable(mod, target, pipeline, applied, lambda _: None)
    except Exception as error:  # TVM raises errors of every kind
        return presence(True, str(error).strip().splitlines()[0][:120])
    return presence(False, built)


def _default_rules(*_applied: Workaround) -> ProbeAnswer:
    """Look for rules for products in the default pipeline's source."""
    from tvm.relax.backend.adreno import pipeline

    missing = [rule for rule in ("Matmul", "GEMV") if f"gpu.{rule}" not in inspect.getsource(pipeline)]
    return presence(bool(missing), f"the pipeline has no {' and no '.join(missing)}", "it has both rules")


PROBES: dict[str, Probe] = {
    "merge-barrier": _merge,
    "matmul-odd-width": _odd_width,
    LET_QUIRK: _let,
    "default-pipeline-products": _default_rules,
}
