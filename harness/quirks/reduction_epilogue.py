"""TVM's schedule for reductions lets work-items read each other's private arrays."""

from __future__ import annotations

import re
from typing import Any

from harness.compiler.passes import Passes, insert_before
from harness.paths.kernels import kernels
from harness.paths.opencl import OpenCLPath
from harness.paths.workaround import Edits
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import grouped_conv_and_activation, source

_GROUP = 4
"""Channels of a group in the sample: a work-item has as many results, one in each channel of its column."""

_MOST_CHANNELS = 256
"""Of a group, for which a tile of 16 columns in float32 takes half of an Adreno's local memory (32 KiB)."""


def probe(*applied: Quirk) -> ProbeAnswer:
    """Build a grouped 1x1 convolution with an activation, and count the numbers that a work-item keeps to itself."""
    code = "".join(kernel.body for kernel in kernels(source(grouped_conv_and_activation(), applied, OpenCLPath())))
    sizes = [int(size) for size in re.findall(r"^\s*float \w+_local\w*\[(\d+)\];", code, re.MULTILINE)]
    if not sizes:
        return ProbeAnswer(Presence.CANNOT_TELL, "a grouped convolution has no private array")
    state = Presence.PRESENT if max(sizes) > _GROUP else Presence.ABSENT
    return ProbeAnswer(state, f"work-items with {_GROUP} results each keep {max(sizes)} to themselves")


class ShareWhatTheEpilogueReads:
    """`gpu.Reduction`, for functions with which it goes wrong; the others are left to TVM's own rules."""

    def apply(self, func: Any, target: Any, tunable: bool) -> Any:
        """The schedule, or None for a function that TVM's own rules can have."""
        from tvm.s_tir import dlight
        from tvm.s_tir.schedule import ScheduleError

        class Shared(dlight.gpu.Reduction):  # type: ignore[misc]
            channels = 0

            def _sch_inner_spatial(self, sch: Any, *args: Any) -> None:
                _target, block, _where, channels, epilogue, *_ = args
                super()._sch_inner_spatial(sch, *args)
                if channels and epilogue:
                    self.channels = int(channels)
                    sch.set_scope(block, 0, "shared")

        rule = Shared()
        try:
            schedule = rule.apply(func, target, tunable)
        except ScheduleError:  # another defect, with a workaround of its own
            return None
        if rule.channels > _MOST_CHANNELS:
            return dlight.gpu.Fallback().apply(func, target, tunable)
        return schedule if rule.channels else None


def share(passes: Passes) -> Passes:
    """Apply the rule before the last `ApplyDefaultSchedule`, which is the generic one for all GPUs."""
    from tvm.s_tir import dlight

    return insert_before(passes, "ApplyDefaultSchedule", dlight.ApplyDefaultSchedule(ShareWhatTheEpilogueReads()))


QUIRK = Quirk(
    id="reduction-epilogue-private",
    title="a 1x1 convolution in groups, fused with what follows it, reads what other work-items keep in private arrays",
    upstream="python/tvm/s_tir/dlight/gpu/reduction.py: _sch_inner_spatial binds the epilogue's loops in another order "
    "than the reduction's",
    since="0.25",
    paths=("opencl", "texture", "clml"),
    probe=probe,
    workaround="what the epilogue reads is in local memory, which the work-items of a group share",
    edits=Edits(relax=share),
)
