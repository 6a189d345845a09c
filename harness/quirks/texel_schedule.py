"""Element-wise operators that write a texture are scheduled one number per thread, not one texel."""

from __future__ import annotations

from typing import Any

from harness.compiler.compat import writes_texture
from harness.compiler.passes import Passes, insert_before
from harness.paths.workaround import Edits
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import concat, lower


def probe(*applied: Quirk) -> ProbeAnswer:
    """Look whether the schedule of a concatenation into an image has a loop over lanes."""
    functions = {name.name_hint: func for name, func in lower(concat(), applied).functions.items()}
    func = functions.get("concatenate")
    if func is None or not writes_texture(func):
        return ProbeAnswer(Presence.CANNOT_TELL, "no concatenation is written into an image")
    if "T.vectorized" in func.script():
        return ProbeAnswer(Presence.ABSENT, "a concatenation stores four lanes at a time")
    return ProbeAnswer(Presence.PRESENT, "a concatenation into an image has no loop over its four lanes")


class TexelRule:
    """TVM's own fallback schedule for Adreno, which vectorises the lanes, for functions that write a texture."""

    def apply(self, func: Any, target: Any, tunable: bool) -> Any:
        """The schedule, or None for a function that writes a buffer."""
        from tvm.s_tir import dlight

        return dlight.adreno.Fallback().apply(func, target, tunable) if writes_texture(func) else None


def schedule_by_texel(passes: Passes) -> Passes:
    """Apply the rule before the last `ApplyDefaultSchedule`, which is the generic one for all GPUs."""
    from tvm.s_tir import dlight

    return insert_before(passes, "ApplyDefaultSchedule", dlight.ApplyDefaultSchedule(TexelRule()))


QUIRK = Quirk(
    id="texture-scalar-schedule",
    title="element-wise operators into a texture (such as concat) get a schedule that stores single numbers as texels",
    upstream="python/tvm/relax/backend/adreno/pipeline.py: dlight's gpu.Fallback, where adreno.Fallback would be right",
    since="0.25",
    paths=("texture",),
    probe=probe,
    workaround="functions that write a texture get dlight's adreno.Fallback schedule, which vectorises the lanes",
    edits=Edits(relax=schedule_by_texel),
)
