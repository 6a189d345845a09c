"""Element-wise operators that write a texture are scheduled one number per thread, not one texel."""

from __future__ import annotations

import re
from typing import Any

from harness.quirks.base import Answer, Quirk, State
from harness.quirks.sample import concat, source_as_shipped
from harness.tvm_compat import Passes, insert_before, memory_scope

_STORED = re.compile(r"write_image[fh]\([^;]*as_(?:float|half)4\((\w+)\)\);")


def probe() -> Answer:
    """Look whether a concatenation stores single numbers where an image takes four."""
    source = source_as_shipped(concat())
    stored = {name for name in _STORED.findall(source) if re.search(rf"\b(?:float|half) {name};", source)}
    if stored:
        return Answer(State.PRESENT, f"a kernel stores the single number `{min(stored)}` as a texel of four")
    if "write_image" in source:
        return Answer(State.ABSENT, "every store into an image takes four numbers")
    return Answer(State.CANNOT_TELL, "no kernel stores into an image")


class TexelRule:
    """TVM's own fallback schedule for Adreno, which vectorises the lanes, for functions that write a texture."""

    def apply(self, func: Any, target: Any, tunable: bool) -> Any:
        """The schedule, or None for a function that writes a buffer."""
        from tvm.s_tir import dlight

        if "texture" not in memory_scope(func.params[-1]):
            return None
        return dlight.adreno.Fallback().apply(func, target, tunable)


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
    relax=schedule_by_texel,
)
