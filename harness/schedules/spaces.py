"""Where candidates come from: for each task a space of schedules, and from a seed always the same one of it.

What a task writes decides. Into buffers, TVM's own rules for GPUs are right. Into images they are wrong: they store
single numbers where an image takes whole texels (`harness.quirks.texel_schedule`), and TVM's tuner, which never looks
at an answer, keeps such kernels for their speed. So convolutions in NCHW4c have a space of ours, and what else is
written into images keeps TVM's default schedule.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from typing import Any, Protocol

from harness.compiler.compat import writes_texture
from harness.schedules.apply import alone

_INTRINSICS = "tvm.s_tir.tensor_intrin"
"""Importing it registers the tensor instructions of other processors, for 20 s of processor time. `TuneContext` does
so, and no rule for OpenCL uses any."""


class Space(Protocol):
    """All schedules that a task may take."""

    def sample(self, seed: int) -> Any:
        """TVM's `Schedule` that belongs to a seed, or None if no device could run it. Raises what TVM raises."""


def space_of(function: Any, target: Any) -> Space | None:
    """The space of a task; None for one that keeps TVM's default schedule."""
    if _is_texel_conv(function):
        return TexelConv(function, target)
    return None if writes_texture(function) else Rules(function, target)


class Rules:
    """TVM's own rules for GPUs, within the target's limits on threads and local memory."""

    def __init__(self, function: Any, target: Any) -> None:
        self._function = function
        with _without_intrinsics():
            from tvm.s_tir import meta_schedule

            context = meta_schedule.TuneContext(
                alone(function), target=target, space_generator="post-order-apply", rand_state=1, num_threads=1
            )
        self._designs = [design.trace for design in context.generate_design_space()]
        self._finish = list(context.space_generator.postprocs)

    def sample(self, seed: int) -> Any:
        """One of the designs that the rules make, with its tile sizes drawn anew."""
        from tvm import s_tir

        design = self._designs[seed % len(self._designs)]
        schedule = s_tir.Schedule(alone(self._function), seed=seed + 1, error_render_level="none")
        s_tir.schedule.Trace(design.insts, {}).apply_to_schedule(schedule, remove_postproc=True)
        return schedule if all(finish.apply(schedule) for finish in self._finish) else None


class TexelConv:
    """Convolutions in NCHW4c: TVM's own schedule for Adreno, with sizes that are drawn instead of fixed.

    Each work-item computes whole texels, and the lanes of a texel are one vector all the way. Source:
    python/tvm/s_tir/dlight/adreno/convolution.py, whose sizes are the first of each list but one of 8.
    """

    def __init__(self, function: Any, target: Any) -> None:
        self._function = function
        self._target = target

    def sample(self, seed: int) -> Any:
        """One choice of how many texels a work-item computes, and how work-items form groups."""
        from tvm import s_tir

        schedule = s_tir.Schedule(alone(self._function), seed=seed + 1, error_render_level="none")
        schedule.work_on("main")
        with self._target:
            return schedule if _texel_conv(schedule, int(self._target.attrs["max_threads_per_block"])) else None


_PER_ITEM = ((8, 1, 2, 4), (1, 2), (1, 2, 4))
"""Texels of one work-item: along channels, rows and columns."""
_PER_GROUP = ((1, 2, 4, 8), (16, 1, 2, 4, 8), (16, 1, 2, 4, 8, 32))
"""Work-items of one group, likewise."""
_MOST_PER_ITEM = 16
"""More accumulators than registers make every kernel slow, and its source long."""


def _texel_conv(schedule: Any, most_threads: int) -> bool:
    """Schedule a convolution; False if the choice is one that no device could run."""
    from tvm.s_tir.dlight.adreno.utils import schedule_default, schedule_inline_blocks

    blocks = _blocks(schedule)
    conv = next(block for block in blocks if "conv2d_NCHWc" in schedule.get(block).name_hint)
    rest = [block for block in blocks if schedule.get(block).name_hint != schedule.get(conv).name_hint]
    items, groups = ([_drawn(schedule, choice) for choice in choices] for choices in (_PER_ITEM, _PER_GROUP))
    if _product(schedule, items) > _MOST_PER_ITEM or _product(schedule, groups) > most_threads:
        return False
    n, oc, oh, ow, lanes, ic, kh, kw = schedule.get_loops(conv)
    outer = [
        schedule.split(loop, [None, item, group], preserve_unit_iters=True)
        for loop, item, group in zip((oc, oh, ow), items, groups, strict=True)
    ]
    (bz, vz, tz), (by, vy, ty), (bx, vx, tx) = outer
    bz = schedule.fuse(n, bz, preserve_unit_iters=True)
    schedule.reorder(bz, by, bx, vz, vy, vx, tz, ty, tx, lanes)
    for loops, axis in (((bz, by, bx), "blockIdx"), ((vz, vy, vx), "vthread"), ((tz, ty, tx), "threadIdx")):
        for loop, letter in zip(loops, "zyx", strict=True):
            schedule.bind(loop, f"{axis}.{letter}")
    read = schedule.cache_read(conv, 0, "local")
    ic, texel = schedule.split(ic, [None, 4], preserve_unit_iters=True)
    schedule.reorder(ic, kh, kw, texel, lanes)
    schedule.compute_at(read, kw, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(read)[-1])
    written = schedule.cache_write(conv, 0, "local")
    schedule.reverse_compute_at(written, tx, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(written)[-1])
    begun = schedule.decompose_reduction(conv, tx)
    schedule.vectorize(schedule.get_loops(begun)[-1])
    schedule_default(schedule, schedule_inline_blocks(schedule, rest))
    return True


def _drawn(schedule: Any, choices: Sequence[int]) -> Any:
    return schedule.sample_categorical(list(choices), [1.0 / len(choices)] * len(choices))


def _product(schedule: Any, drawn: Sequence[Any]) -> int:
    product = 1
    for one in drawn:
        product *= int(schedule.get(one))
    return product


def _blocks(schedule: Any) -> Sequence[Any]:
    from tvm.s_tir.dlight import analysis

    found: Sequence[Any] = schedule.get_child_blocks(analysis.get_root_block(schedule, "main"))
    return found


def _is_texel_conv(function: Any) -> bool:
    """Whether a function is a convolution of channels in fours, by the name that TVM's legalisation gives it."""
    from tvm import s_tir

    if "conv2d_NCHWc" not in function.script():
        return False
    schedule = s_tir.Schedule(alone(function))
    schedule.work_on("main")
    names = [schedule.get(block).name_hint for block in _blocks(schedule)]
    return sum("conv2d_NCHWc" in name for name in names) == 1


class _without_intrinsics:  # a context manager reads like a function
    """Meanwhile importing TVM's tensor instructions does nothing, unless that was done before."""

    def __enter__(self) -> None:
        self._absent = _INTRINSICS not in sys.modules
        if self._absent:
            sys.modules[_INTRINSICS] = types.ModuleType(_INTRINSICS)

    def __exit__(self, *_: object) -> None:
        if self._absent:
            sys.modules.pop(_INTRINSICS, None)
