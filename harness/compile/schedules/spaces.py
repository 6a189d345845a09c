"""Spaces of schedules: all that a task may take, each given by its decisions. `tune` draws candidates from them.

What a task writes decides. Into buffers, TVM's own rules for GPUs are right.
Into images they are wrong: they store single numbers where an image takes whole texels
(`harness.compile.quirks.schedules`), and TVM's tuner, which never looks at an answer, keeps such kernels for their
speed. So convolutions in NCHW4c have a space of ours, and what else is written into images keeps TVM's default
schedule.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from harness.compile.compiler.compat import dlight, s_tir, tvm, without_intrinsics, writes_texture
from harness.compile.schedules.database import ThreadLimits
from harness.compile.schedules.tasks import module_of
from harness.compile.schedules.trace import plain

TILE, CHOICE = "SamplePerfectTile", "SampleCategorical"
"""TVM's instructions that draw: how a loop is split into so many, and one of some numbers."""
Decision = int | list[int]
"""For a loop, the extents of its parts, outermost first; else the number of the choice."""


def space_of(function: Any, target: Any, limits: ThreadLimits) -> ScheduleRules | TexelConv | None:
    """Return the space of a task: all schedules that it may take; None for one that keeps TVM's default schedule."""
    if is_texel_conv(function):
        return TexelConv(function, target, limits)
    return None if writes_texture(function) else ScheduleRules(function, target, limits)


@dataclass(frozen=True)
class OpenDecision:
    """One thing that a schedule leaves open."""

    kind: str
    extent: int = 1
    """Extent of the loop that is split."""
    parts: int = 1
    most_inner: int = 1
    numbers: tuple[float, ...] = ()
    """What one is chosen of."""

    def fits(self, decision: Any) -> bool:
        """Return whether a decision is one of this."""
        if self.kind == TILE:
            parts = decision if isinstance(decision, list) else []
            return len(parts) == self.parts and prod(parts) == self.extent and min(parts) > 0
        return type(decision) is int and (self.kind != CHOICE or 0 <= decision < len(self.numbers))


class ScheduleRules:
    """TVM's own rules for GPUs, within a device's limits on threads and local memory."""

    def __init__(self, function: Any, target: Any, limits: ThreadLimits) -> None:
        self._function = function
        self.limits = limits
        with without_intrinsics():
            from tvm.s_tir import meta_schedule

            context = meta_schedule.TuneContext(
                module_of(function),
                target=_limit_target(target, limits),
                space_generator="post-order-apply",
                rand_state=1,
                num_threads=1,
            )
        traces = [design.trace for design in context.generate_design_space()]
        self._finish = list(context.space_generator.postprocs)
        self.designs = [Design.of(trace) for trace in traces]

    def with_decisions(self, decisions: Sequence[Decision]) -> Any:
        """Return the design that these decisions fit, with them."""
        for design in self.designs:
            if design.fits(decisions) and (schedule := self.make(design, decisions, 0)) is not None:
                return schedule
        return None

    def make(self, design: Design, decisions: Sequence[Decision | None], seed: int) -> Any:
        """Return the schedule of a design with these decisions, and TVM's own by a seed where one is None.

        None if no device could run it.
        """
        schedule = s_tir.Schedule(module_of(self._function), seed=seed + 1, error_render_level="none")
        trace = s_tir.schedule.Trace(design.trace.insts, design.with_decisions(decisions))
        trace.apply_to_schedule(schedule, remove_postproc=True)
        return schedule if all(finish.apply(schedule) for finish in self._finish) else None


@dataclass(frozen=True)
class Design:
    """One way in which the rules arrange the loops."""

    trace: Any
    opens: tuple[OpenDecision, ...]
    """What it leaves open, in its order."""

    @classmethod
    def of(cls, trace: Any) -> Design:
        """Return what a design of TVM's leaves open, by what TVM drew itself."""
        decisions = trace.decisions
        return cls(trace, tuple(_open(each, decisions[each]) for each in trace.insts if each in decisions))

    def fits(self, decisions: Sequence[Any]) -> bool:
        """Return whether these are decisions of this design."""
        return len(decisions) == len(self.opens) and all(
            choice.fits(decision) for choice, decision in zip(self.opens, decisions, strict=True)
        )

    def with_decisions(self, decisions: Sequence[Decision | None]) -> Mapping[Any, Any]:
        """Return the decisions in the form of TVM's trace, without those that TVM makes."""
        drawing = (each for each in self.trace.insts if each in self.trace.decisions)
        return {each: decision for each, decision in zip(drawing, decisions, strict=True) if decision is not None}


def _open(instruction: Any, decision: Any) -> OpenDecision:
    kind, attributes = str(instruction.kind.name), instruction.attrs
    if kind == TILE:
        return OpenDecision(kind, prod(map(int, decision)), int(attributes[0]), int(attributes[1]))
    if kind == CHOICE:
        return OpenDecision(kind, numbers=tuple(plain(attributes[0])))
    return OpenDecision(kind)


def _limit_target(target: Any, limits: ThreadLimits) -> Any:
    """Return the target with the limits of a device, which only the search obeys: no kernel is built for it."""
    items = {"max_threads_per_block": limits.items, "max_num_threads": limits.items}
    return tvm.target.Target({**dict(target.export()), **items, "max_shared_memory_per_block": limits.local_bytes})


class TexelConv:
    """Convolutions in NCHW4c: TVM's own schedule for Adreno, with sizes that are drawn instead of fixed.

    Each work-item computes whole texels, and the lanes of a texel are one vector all the way. Source:
    python/tvm/s_tir/dlight/adreno/convolution.py, whose sizes are the first of each list but one of 8.
    """

    def __init__(self, function: Any, target: Any, limits: ThreadLimits) -> None:
        self._function = function
        self._target = target
        self.limits = limits

    def with_decisions(self, decisions: Sequence[Decision]) -> Any:
        """Return the choice of these numbers, each of its list in `SIZES`."""
        return self.make(tuple(decisions)) if tuple(decisions) in self.choices else None

    @cached_property
    def choices(self) -> list[tuple[int, ...]]:
        """All that a device could run and no loop is too short for, in an order that leaves no corner to the end."""
        schedule = s_tir.Schedule(module_of(self._function))
        schedule.work_on("main")
        loops = schedule.get_loops(_conv(schedule, _blocks(schedule)))[1:4]
        extents = [int(schedule.get(loop).extent) for loop in loops]
        every = product(*(range(len(sizes)) for sizes in SIZES))
        within = [choice for choice in every if self._within(choice, extents)]
        return random.Random(0).sample(within, len(within))

    def _within(self, choice: Sequence[int], extents: Sequence[int]) -> bool:
        items, groups = _sizes(choice)
        used = all(item * group < 2 * extent for item, group, extent in zip(items, groups, extents, strict=True))
        return used and prod(items) <= _MOST_PER_ITEM and prod(groups) <= self.limits.items

    def make(self, choice: Sequence[Any]) -> Any:
        """Return the schedule of one of `choices`."""
        schedule = s_tir.Schedule(module_of(self._function), seed=1, error_render_level="none")
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
"""Most accumulators of a work-item. With more than it has registers, a kernel is slow and its source long."""


def _sizes(choice: Sequence[int]) -> tuple[list[int], list[int]]:
    """Texels of a work-item and work-items of a group, along channels, rows and columns."""
    chosen = [sizes[index] for sizes, index in zip(SIZES, choice, strict=True)]
    return chosen[:3], chosen[3:]


def _arrange(schedule: Any, choice: Sequence[int]) -> None:
    """Schedule a convolution."""
    from tvm.s_tir.dlight.adreno.utils import schedule_default, schedule_inline_blocks

    blocks = _blocks(schedule)
    conv = _conv(schedule, blocks)
    rest = [block for block in blocks if schedule.get(block).name_hint != schedule.get(conv).name_hint]
    drawn = [_choose(schedule, sizes, index) for sizes, index in zip(SIZES, choice, strict=True)]
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


def _choose(schedule: Any, sizes: Sequence[int], index: int) -> Any:
    """One of some sizes, as something that a trace says was chosen."""
    return schedule.sample_categorical(list(sizes), [1.0 / len(sizes)] * len(sizes), decision=index)


def _blocks(schedule: Any) -> Sequence[Any]:
    blocks: Sequence[Any] = schedule.get_child_blocks(dlight.analysis.get_root_block(schedule, "main"))
    return blocks


def _conv(schedule: Any, blocks: Sequence[Any]) -> Any:
    return next(block for block in blocks if "conv2d_NCHWc" in schedule.get(block).name_hint)


def is_texel_conv(function: Any) -> bool:
    """Return whether a function is a convolution of channels in fours, by the name that TVM's legalisation gives it."""
    if "conv2d_NCHWc" not in function.script():
        return False
    schedule = s_tir.Schedule(module_of(function))
    schedule.work_on("main")
    names = [schedule.get(block).name_hint for block in _blocks(schedule)]
    return sum("conv2d_NCHWc" in name for name in names) == 1
