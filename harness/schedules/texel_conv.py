"""Schedules of convolutions whose channels are in fours, as they are read from images and written into them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from harness.schedules.apply import alone
from harness.schedules.drawing import Decision, ThreadLimits


class TexelConv:
    """Convolutions in NCHW4c: TVM's own schedule for Adreno, with sizes that are drawn instead of fixed.

    Each work-item computes whole texels, and the lanes of a texel are one vector all the way. Source:
    python/tvm/s_tir/dlight/adreno/convolution.py, whose sizes are the first of each list but one of 8.
    """

    def __init__(self, function: Any, target: Any, limits: ThreadLimits) -> None:
        self._function = function
        self._target = target
        self._limits = limits

    def sample(self, seed: int) -> Any:
        """One choice of how many texels a work-item computes, and how work-items form groups."""
        return self._made(self._choices[seed % len(self._choices)])

    def decided(self, decisions: Sequence[Decision]) -> Any:
        """The choice of these numbers, each of its list in `SIZES`."""
        return self._made(tuple(decisions)) if tuple(decisions) in self._choices else None

    @cached_property
    def _choices(self) -> list[tuple[int, ...]]:
        """All that a device could run and no loop is too short for, in an order that leaves no corner to the end."""
        from tvm import s_tir

        schedule = s_tir.Schedule(alone(self._function))
        schedule.work_on("main")
        loops = schedule.get_loops(_conv(schedule, _blocks(schedule)))[1:4]
        extents = [int(schedule.get(loop).extent) for loop in loops]
        every = product(*(range(len(sizes)) for sizes in SIZES))
        within = [choice for choice in every if self._within(choice, extents)]
        return random.Random(0).sample(within, len(within))

    def _within(self, choice: Sequence[int], extents: Sequence[int]) -> bool:
        items, groups = _sizes(choice)
        used = all(item * group < 2 * extent for item, group, extent in zip(items, groups, extents, strict=True))
        return used and prod(items) <= _MOST_PER_ITEM and prod(groups) <= self._limits.items

    def _made(self, choice: Sequence[Any]) -> Any:
        from tvm import s_tir

        schedule = s_tir.Schedule(alone(self._function), seed=1, error_render_level="none")
        schedule.work_on("main")
        with self._target:
            _arrange(schedule, choice)
        return schedule


_PER_ITEM = ((8, 1, 2, 4), (1, 2), (1, 2, 4))
"""Texels of one work-item: along channels, rows and columns."""
_PER_GROUP = ((1, 2, 4, 8), (16, 1, 2, 4, 8), (16, 1, 2, 4, 8, 32))
"""Work-items of one group, likewise."""
SIZES = (*_PER_ITEM, *_PER_GROUP)
_MOST_PER_ITEM = 16
"""More accumulators than registers make every kernel slow, and its source long."""


def _sizes(choice: Sequence[int]) -> tuple[list[int], list[int]]:
    """Texels of a work-item and work-items of a group, along channels, rows and columns."""
    taken = [sizes[index] for sizes, index in zip(SIZES, choice, strict=True)]
    return taken[:3], taken[3:]


def _arrange(schedule: Any, choice: Sequence[int]) -> None:
    """Schedule a convolution."""
    from tvm.s_tir.dlight.adreno.utils import schedule_default, schedule_inline_blocks

    blocks = _blocks(schedule)
    conv = _conv(schedule, blocks)
    rest = [block for block in blocks if schedule.get(block).name_hint != schedule.get(conv).name_hint]
    drawn = [_drawn(schedule, sizes, index) for sizes, index in zip(SIZES, choice, strict=True)]
    items, groups = drawn[:3], drawn[3:]
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


def _drawn(schedule: Any, sizes: Sequence[int], index: int) -> Any:
    """One of some sizes, as something that a trace says was chosen."""
    return schedule.sample_categorical(list(sizes), [1.0 / len(sizes)] * len(sizes), decision=index)


def _blocks(schedule: Any) -> Sequence[Any]:
    from tvm.s_tir.dlight import analysis

    found: Sequence[Any] = schedule.get_child_blocks(analysis.get_root_block(schedule, "main"))
    return found


def _conv(schedule: Any, blocks: Sequence[Any]) -> Any:
    return next(block for block in blocks if "conv2d_NCHWc" in schedule.get(block).name_hint)


def is_texel_conv(function: Any) -> bool:
    """Whether a function is a convolution of channels in fours, by the name that TVM's legalisation gives it."""
    from tvm import s_tir

    if "conv2d_NCHWc" not in function.script():
        return False
    schedule = s_tir.Schedule(alone(function))
    schedule.work_on("main")
    names = [schedule.get(block).name_hint for block in _blocks(schedule)]
    return sum("conv2d_NCHWc" in name for name in names) == 1
