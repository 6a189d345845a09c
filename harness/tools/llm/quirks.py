"""Known defects of TVM in programs of language models: a row with its workaround for each."""

from __future__ import annotations

import re
from typing import Any

from device_runner.failures import RigFailure
from harness.base.request import QuirkPolicy
from harness.compile.compiler.compat import dlight, s_tir, tir_function
from harness.compile.compiler.releases import tvm_version
from harness.compile.paths.base import NO_EDITS, Edits
from harness.compile.quirks.base import Quirk
from harness.compile.quirks.schedules import put_first
from harness.tools.llm.lowering import DEFAULT, NO_CSE

MERGE = "tir_attention_merge_state"
BARRIER = "tvm_storage_sync"
LET, LET_QUIRK = "T.Let(", "let-common-expression"
"""An expression that binds a variable, in TVM's script. The rotations of Llama 3 have some."""


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
    try:
        dlight.gpu.Matmul().apply(func, target, False)
    except s_tir.schedule.ScheduleError:
        rules = (dlight.gpu.GeneralReduction(), dlight.gpu.Fallback())
        return next((schedule for rule in rules if (schedule := rule.apply(func, target, False)) is not None), None)
    return None


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


def chosen_quirks(policy: QuirkPolicy, pipeline: str) -> list[str]:
    """Return the ids of those that are worked around. MLC's passes never eliminate common expressions."""
    ids = [quirk.id for quirk in QUIRKS if quirk.edits != NO_EDITS and (pipeline == DEFAULT or quirk.id != LET_QUIRK)]
    return [id for id in ids if not policy.as_shipped or id in policy.with_quirks]
