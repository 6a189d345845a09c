"""No schedule of TVM's takes an average pool whose result is in an image."""

from __future__ import annotations

from typing import Any

from harness.compiler.compat import writes_texture
from harness.compiler.passes import Passes, insert_before
from harness.paths.workaround import Edits
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import average_pool_into_image, lower

_WORK_ITEMS = 256
"""Most of a work-group, as TVM's own schedule for pools has it."""


def probe(*applied: Quirk) -> ProbeAnswer:
    """Look whether the schedule of an average pool into an image has a loop over lanes."""
    try:
        lowered = lower(average_pool_into_image(), applied)
    except Exception as error:  # as 0.25 and 0.26 do
        return ProbeAnswer(Presence.PRESENT, str(error).strip().splitlines()[0])
    functions = {name.name_hint: func for name, func in lowered.functions.items()}
    func = functions.get("avg_pool2d")
    if func is None or not writes_texture(func):
        return ProbeAnswer(Presence.CANNOT_TELL, "no average pool is written into an image")
    if "T.vectorized" in func.script():
        return ProbeAnswer(Presence.ABSENT, "an average pool stores four lanes at a time")
    return ProbeAnswer(Presence.PRESENT, "an average pool into an image has no loop over its four lanes")


class ReduceByTexel:
    """What TVM's `adreno.Pool2D` does for max pools and adaptive ones, for every reduction into an image."""

    def apply(self, func: Any, target: Any, tunable: bool) -> Any:
        """The schedule, or None for a function that TVM's own rules can have."""
        from tvm.s_tir.schedule import ScheduleError

        try:
            return _schedule(func) if writes_texture(func) else None
        except ScheduleError:
            return None


def _schedule(func: Any) -> Any:
    """One work-item for a texel; its four lanes are summed in local memory and stored at once."""
    from tvm import s_tir
    from tvm.s_tir.dlight import analysis

    schedule = s_tir.Schedule(func)
    blocks = schedule.get_child_blocks(analysis.get_root_block(schedule))
    infos = [analysis.get_sblock_info(schedule, block) for block in blocks]
    reductions = [index for index, info in enumerate(infos) if info.is_reduction()]
    if len(reductions) != 1:
        return None
    at = reductions[0]
    for before in blocks[:at]:
        schedule.compute_inline(before)
    kinds = "".join(one.kind for one in infos[at].iters)
    loops = schedule.get_loops(blocks[at])
    spatial, reduced = kinds.count("S"), kinds.count("R")
    if kinds != "S" * spatial + "R" * reduced or len(loops) != len(kinds):
        return None
    *texels, lanes = loops[:spatial]
    if not texels or schedule.get(lanes).extent != 4:
        return None
    stored = schedule.cache_write(blocks[at], 0, "local")
    schedule.reverse_compute_at(stored, lanes)
    for after in blocks[at + 1 :]:
        schedule.reverse_compute_inline(after)
    group, item = schedule.split(schedule.fuse(*texels), [None, _WORK_ITEMS])
    schedule.bind(group, "blockIdx.x")
    schedule.bind(item, "threadIdx.x")
    schedule.vectorize(lanes)
    return schedule


def reduce_by_texel(passes: Passes) -> Passes:
    """Apply the rule before the last `ApplyDefaultSchedule`, which is the generic one for all GPUs."""
    from tvm.s_tir import dlight

    return insert_before(passes, "ApplyDefaultSchedule", dlight.ApplyDefaultSchedule(ReduceByTexel()))


QUIRK = Quirk(
    id="texture-average-pool",
    title="average pools into a texture get a schedule that stores single numbers as texels",
    upstream="python/tvm/s_tir/dlight/adreno/pool.py knows pool_max and adaptive_pool_sum alone; fallback.py calls "
    "cache_write after decompose_reduction, which raises for every reduction along two axes",
    since="0.25",
    paths=("texture",),
    probe=probe,
    workaround="reductions that write a texture get a schedule of ours, as TVM's for max pools",
    edits=Edits(relax=reduce_by_texel),
)
