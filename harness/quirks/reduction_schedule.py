"""TVM's schedule for reductions raises an error for shapes that it cannot tile, instead of declining them."""

from __future__ import annotations

from typing import Any

from harness.compiler.passes import Passes, insert_before
from harness.paths.workaround import Edits
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import average_pool, lower


def probe(*applied: Quirk) -> ProbeAnswer:
    """Lower an average pool in NCHW4c with TVM's own passes."""
    mod = average_pool()
    try:
        lower(mod, applied)
    except Exception as error:  # whatever TVM raises is the answer
        return ProbeAnswer(Presence.PRESENT, str(error).strip().splitlines()[0])
    return ProbeAnswer(Presence.ABSENT, "an average pool in NCHW4c is scheduled")


class UnlessReductionRaises:
    """The generic fallback for functions at which `gpu.Reduction` raises; the others are left to TVM."""

    def apply(self, func: Any, target: Any, tunable: bool) -> Any:
        """The schedule, or None for a function that TVM's own rules can have."""
        from tvm.s_tir import dlight
        from tvm.s_tir.schedule import ScheduleError

        try:
            dlight.gpu.Reduction().apply(func, target, tunable)
        except ScheduleError:
            return dlight.gpu.Fallback().apply(func, target, tunable)
        return None


def fall_back(passes: Passes) -> Passes:
    """Apply the rule before the last `ApplyDefaultSchedule`, which is the generic one for all GPUs."""
    from tvm.s_tir import dlight

    return insert_before(passes, "ApplyDefaultSchedule", dlight.ApplyDefaultSchedule(UnlessReductionRaises()))


QUIRK = Quirk(
    id="reduction-schedule-raises",
    title="the GPU schedule for reductions raises on an average pool in NCHW4c, and nothing is compiled",
    upstream="python/tvm/s_tir/dlight/gpu/reduction.py: _sch_inner_spatial; 0.27 declines such shapes",
    since="0.25",
    until="0.27",
    paths=("texture",),
    probe=probe,
    workaround="functions at which the rule raises get dlight's gpu.Fallback schedule",
    edits=Edits(relax=fall_back),
)
