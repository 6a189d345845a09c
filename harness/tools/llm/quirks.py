"""Known defects of TVM in programs of language models: a row with probe and workaround for each."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

from device_runner.failures import RigFailure
from harness.base.request import QuirkPolicy
from harness.compile.compiler.compat import tir_function
from harness.compile.compiler.releases import tvm_version
from harness.compile.paths.base import NO_EDITS, Edits, Workaround, edit_model
from harness.compile.quirks.base import Presence, ProbeAnswer, Quirk
from harness.compile.quirks.schedules import put_first
from harness.tools.llm.config import LlmConfig, RopeScaling
from harness.tools.llm.lowering import DEFAULT, MLC, NO_CSE, build_executable, target_of
from harness.tools.llm.network import build_module
from harness.tools.llm.weights import FORMATS

MERGE = "tir_attention_merge_state"
BARRIER = "tvm_storage_sync"
LET, LET_QUIRK = "T.Let(", "let-common-expression"
"""An expression that binds a variable, in TVM's script. The rotations of Llama 3 have some."""
ODD_WIDTH = 1003
"""A vocabulary whose 32nd part is odd."""


def add_merge_barrier(mod: Any) -> Any:
    """Put a barrier before the merge of two attention states overwrites what all threads of a head read."""
    for name, function in mod.functions_items():
        if str(name.name_hint).startswith(MERGE):
            mod[name] = _with_barrier(function)
    return mod


def _with_barrier(function: Any) -> Any:
    """Return the function with a barrier before its store to S, the sums of exponentials, if it has none."""
    text = function.script()
    if BARRIER in text:
        return function
    guarded, count = re.subn(r"^( +)(S\[.*\] = )", rf'\1T.{BARRIER}("shared")\n\1\2', text, flags=re.MULTILINE)
    if count != 1:
        raise RigFailure(f"TVM {tvm_version()} merges attention states in a way that is not known here")
    symbol = function.attrs["global_symbol"]
    return tir_function(guarded).with_attr("global_symbol", symbol)


def mark_lets(mod: Any) -> Any:
    """Mark functions with `Let`, so that their common expressions are not eliminated."""
    for name, function in mod.functions_items():
        if LET in function.script():
            mod[name] = function.with_attr(NO_CSE, True)
    return mod


def reduction_if_matmul_raises(func: Any, target: Any) -> Any:
    """Return a schedule for reductions for products at which dlight's rule raises; the others are left to TVM."""
    from tvm.s_tir import dlight
    from tvm.s_tir.schedule import ScheduleError

    try:
        dlight.gpu.Matmul().apply(func, target, False)
    except ScheduleError:
        rules = (dlight.gpu.GeneralReduction(), dlight.gpu.Fallback())
        return next((schedule for rule in rules if (schedule := rule.apply(func, target, False)) is not None), None)
    return None


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
    return ProbeAnswer.of(bare, "all threads of a head read S[n, h], and one overwrites it, without a barrier")


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
        return ProbeAnswer.of(True, str(error).strip().splitlines()[0][:120])
    return ProbeAnswer.of(False, built)


def _default_rules(*_applied: Workaround) -> ProbeAnswer:
    """Look for rules for products in the default pipeline's source."""
    import inspect

    from tvm.relax.backend.adreno import pipeline

    missing = [rule for rule in ("Matmul", "GEMV") if f"gpu.{rule}" not in inspect.getsource(pipeline)]
    return ProbeAnswer.of(bool(missing), f"the pipeline has no {' and no '.join(missing)}", "it has both rules")


QUIRKS = (
    Quirk(
        "merge-barrier",
        "a prompt in chunks, or a second turn, gets wrong answers: threads overwrite what others still have to read",
        upstream="python/tvm/relax/frontend/nn/llm/_decode_kernels.py: _merge_state_inplace",
        workaround="a barrier before the sums of exponentials are overwritten",
        paths=("opencl",),
        edits=Edits(model=add_merge_barrier),
    ),
    Quirk(
        "matmul-odd-width",
        "dlight's rule for products raises for transposed weights with an odd number of 32 columns",
        upstream="python/tvm/s_tir/dlight/gpu/matmul.py: Matmul.sch_outer_reduction",
        workaround="such products get dlight's schedule for reductions",
        paths=("opencl",),
        edits=Edits(relax=put_first(reduction_if_matmul_raises)),
    ),
    Quirk(
        LET_QUIRK,
        "TVM's default pipeline refuses the rotations of Llama 3: a variable is used before it is defined",
        upstream="src/tirx/transform/common_subexpr_elim.cc",
        workaround="the default pipeline leaves the elimination of common expressions out, as mlc-llm does",
        paths=("opencl",),
        edits=Edits(model=mark_lets),
    ),
    Quirk(
        "default-pipeline-products",
        "TVM's default pipeline for Adreno has no schedules for products, so prefill is several times as slow",
        upstream="python/tvm/relax/backend/adreno/pipeline.py",
        workaround="pipeline `mlc`, which has them; the ratio of both is in the table",
        paths=("opencl",),
    ),
)
PROBES: dict[str, Callable[..., ProbeAnswer]] = {
    "merge-barrier": _merge,
    "matmul-odd-width": _odd_width,
    LET_QUIRK: _let,
    "default-pipeline-products": _default_rules,
}
"""The probe of each quirk, by its id. It takes the quirks whose workarounds are applied, none for TVM as it is."""


def chosen_quirks(policy: QuirkPolicy, pipeline: str) -> list[str]:
    """Return the ids of those that are worked around. MLC's passes never eliminate common expressions."""
    ids = [quirk.id for quirk in QUIRKS if quirk.edits != NO_EDITS and (pipeline == DEFAULT or quirk.id != LET_QUIRK)]
    return [id for id in ids if not policy.as_shipped or id in policy.with_quirks]


def quirks_of(ids: Collection[str]) -> tuple[Quirk, ...]:
    """Return the quirks of these ids, in the order in which their workarounds are applied."""
    return tuple(quirk for quirk in QUIRKS if quirk.id in ids)
