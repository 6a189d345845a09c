"""Schedules that TVM's rules for GPUs give to a function: errors, wrong answers, single numbers stored as texels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from harness.compile.compiler.compat import (
    buffer_read,
    bytes_of,
    dlight,
    parameter_buffers,
    relax,
    rewrite_main,
    s_tir,
    tirx,
    type_of,
    writes_texture,
)
from harness.compile.compiler.passes import adreno_tir_passes, before_first, insert_before, passes_before
from harness.compile.compiler.tir import SCHEDULE, is_block, map_children, spatial_block, statement_pass, walk
from harness.compile.paths.base import EditPasses, Edits
from harness.compile.quirks.base import Quirk
from harness.compile.quirks.layouts import any_of, reduced_axes, reshape_reductions

_MOST_CHANNELS = 256
"""Most channels of a group: a tile of 16 columns in float32 then takes half of an Adreno's local memory (32 KiB)."""

_ONE_EACH = 64
"""Bytes of local memory that are one result of each reduction in a kernel, as of a softmax."""

_WORK_ITEMS = 256
"""Most of a work-group, as TVM's own schedule for pools has it."""


Schedule = Callable[[Any, Any], Any]
"""Gives a function its schedule for a target; None for a function that TVM's own rules can have."""


def put_first(schedule: Schedule) -> EditPasses:
    """Apply a rule of ours before the last `ApplyDefaultSchedule`, which is the generic one for all GPUs."""

    def edit(passes: list[Any]) -> list[Any]:
        rule = SimpleNamespace(apply=lambda func, target, _tunable: schedule(func, target))
        return insert_before(passes, SCHEDULE, dlight.ApplyDefaultSchedule(rule))

    return edit


def reduce_no_single_elements(body: Any) -> Any:
    """Make plain stores of reductions over a single element."""
    blocks = (part.block for part in walk(body) if is_block(part))
    return _as_stores(body) if any(_only_element(block) is not None for block in blocks) else body


def _as_stores(statement: Any) -> Any:
    rewritten = map_children(statement, _as_stores)
    value = _only_element(rewritten.block) if is_block(rewritten) else None
    return rewritten if value is None else spatial_block(rewritten, value)


def _only_element(block: Any) -> Any:
    """Return what a block reduces if that is one element and the start is neutral, as TE has it; otherwise None."""
    from tvm_ffi import structural_equal

    reduced = [axis.dom.extent for axis in block.iter_vars if axis.iter_type == tirx.IterVar.CommReduce]
    single = reduced and all(getattr(extent, "value", 0) == 1 for extent in reduced)
    if block.init is None or not single or not isinstance(block.body, tirx.BufferStore):
        return None
    value, sum_so_far = block.body.value, tirx.BufferLoad(block.body.buffer, block.body.indices)
    if not isinstance(value, (tirx.Add, tirx.Mul, tirx.Max, tirx.Min)):
        return None
    others = [operand for operand in (value.a, value.b) if not structural_equal(operand, sum_so_far)]
    return others[0] if len(others) == 1 else None


@dataclass(frozen=True)
class _ReductionTrial:
    """What TVM's rules for reductions make of a function, asked once for all the workarounds."""

    schedule: Any = None
    """None if no rule has one for it."""
    error: Exception | None = None
    """What they raise."""
    channels: int = 0
    """Channels of a group whose sums other work-items read, although they are private."""
    results: int = 1
    """How many results a work-group computes that sums rows."""
    one_each: bool = False
    """Whether a work-group runs what follows a reduction for its own results alone."""


_NO_REDUCTION = _ReductionTrial()


@lru_cache(maxsize=1024)
def _trial(func: Any, target: Any) -> _ReductionTrial:
    """Try TVM's rules for reductions in their order.

    Each asks last whether there is a reduction, after it has put every operator of a fused kernel into the next: 19 s
    for 250 of them.
    """
    if not _reduces(func):
        return _NO_REDUCTION
    rule = _reduction_rule(share=False)
    try:
        one_each = rule.apply(func, target, False)
        schedule = one_each or dlight.gpu.GeneralReduction().apply(func, target, False)
    except (RuntimeError, AssertionError) as error:
        return _ReductionTrial(error=error, results=rule.results)
    return _ReductionTrial(schedule, None, rule.channels, rule.results, one_each is not None)


def _reduction_rule(*, share: bool) -> Any:
    """Return TVM's rule for reductions. It notes what goes wrong, and `share`s what is private if it is asked to."""

    class WatchedReduction(dlight.gpu.Reduction):  # type: ignore[misc]
        channels = 0
        results = 1

        def _sch_inner_spatial(self, sch: Any, *args: Any) -> None:
            _target, block, _where, channels, epilogue, *_ = args
            super()._sch_inner_spatial(sch, *args)
            if channels and epilogue:
                self.channels = int(channels)
                if share:
                    sch.set_scope(block, 0, "shared")

        def _sch_inner_reduction(self, sch: Any, *args: Any) -> None:
            _target, _block, results, *_ = args
            self.results = int(results or 1)
            super()._sch_inner_reduction(sch, *args)

    return WatchedReduction()


def _reduces(func: Any) -> bool:
    """Return whether a function has a reduction."""
    axes = (axis for part in walk(func.body) for axis in getattr(part, "iter_vars", ()))
    return any(axis.iter_type == tirx.IterVar.CommReduce for axis in axes)


def _fallback(func: Any, target: Any) -> Any:
    return dlight.gpu.Fallback().apply(func, target, False)


def fallback_if_reduction_raises(func: Any, target: Any) -> Any:
    """Return the generic fallback for functions at which a rule for reductions raises; the others are left to TVM."""
    return _fallback(func, target) if isinstance(_trial(func, target).error, s_tir.schedule.ScheduleError) else None


def fallback_if(unfit: Callable[[_ReductionTrial, Any], object]) -> EditPasses:
    """Give functions for which TVM's rules are `unfit` the generic fallback, if they write no image of texels."""

    def schedule(func: Any, target: Any) -> Any:
        applies = not writes_texture(func) and unfit(_trial(func, target), func)
        return _fallback(func, target) if applies else None

    return put_first(schedule)


def reads_a_part(trial: _ReductionTrial, _func: Any) -> bool:
    """Return whether a rule for reductions ends with an internal error."""
    return isinstance(trial.error, RuntimeError) and not isinstance(trial.error, s_tir.schedule.ScheduleError)


def changes_extents(trial: _ReductionTrial, func: Any) -> object:
    """Return whether a function pads or cuts a result of a reduction, where a rule is not right.

    That is `gpu.Reduction`; `gpu.GeneralReduction` covers it, or raises.
    """
    return (trial.one_each or trial.error) and _changes_extents(func)


def _changes_extents(func: Any) -> bool:
    """Return whether an operator after a reduction stores fewer numbers, or some under a condition, as a padding."""
    blocks = [part.block for part in walk(func.body) if is_block(part)]
    last = max((place for place, block in enumerate(blocks) if block.init is not None), default=None)
    if last is None:
        return False
    after, results = blocks[last + 1 :], _results(blocks[last])
    stored = [getattr(block.body, "value", None) for block in after]
    pads = any(getattr(getattr(value, "op", None), "name", "").endswith(".if_then_else") for value in stored)
    return pads or any(_results(block) < results for block in after)


def _results(block: Any) -> int:
    return math.prod(int(axis.dom.extent) for axis in block.iter_vars if axis.iter_type == tirx.IterVar.DataPar)


def reduction_with_shared_tile(func: Any, target: Any) -> Any:
    """`gpu.Reduction`, for functions with which it goes wrong; the others are left to TVM's own rules."""
    channels = _trial(func, target).channels
    if channels > _MOST_CHANNELS:
        return _fallback(func, target)
    return _reduction_rule(share=True).apply(func, target, False) if channels else None


def shares_results(trial: _ReductionTrial, _func: Any) -> bool:
    """Return whether a work-group sums several results in turn, and keeps them in local memory.

    `gpu.GeneralReduction` is made for one result of each reduction, as of a softmax. A padding behind a convolution
    has other extents, so that work-groups share the batch alone. TVM cuts what is shared to what a group touches.
    """
    if trial.one_each or not trial.schedule or _allocated(mod := trial.schedule.mod) <= _ONE_EACH:
        return False
    for each in passes_before(adreno_tir_passes(), "LowerOpaqueBlock"):
        mod = each(mod)
    return _allocated(mod) > _ONE_EACH


def _allocated(mod: Any) -> int:
    buffers = (buffer for part in walk(mod["main"].body) for buffer in getattr(part, "alloc_buffers", ()))
    return sum(bytes_of(buffer) for buffer in buffers if str(buffer.scope()).startswith("shared"))


def reduction_by_texel(func: Any, _target: Any) -> Any:
    """Return what TVM's `adreno.Pool2D` does for max pools and adaptive ones, for every reduction into an image."""
    try:
        return _sum_texels(func) if writes_texture(func) else None
    except RuntimeError:  # a ScheduleError, or an InternalError where the result is spread
        return None


def _sum_texels(func: Any) -> Any:
    """One work-item for a texel; its four lanes are summed in local memory and stored at once."""
    schedule = s_tir.Schedule(func)
    blocks = schedule.get_child_blocks(dlight.analysis.get_root_block(schedule))
    infos = [dlight.analysis.get_sblock_info(schedule, block) for block in blocks]
    reductions = [index for index, info in enumerate(infos) if info.is_reduction()]
    if [len(schedule.get(blocks[index]).writes) for index in reductions] != [1]:  # ArgMax writes two
        return None
    at = reductions[0]
    for block in (*blocks[:at], *blocks[at + 1 : -1]):
        schedule.compute_inline(block)
    kinds, loops = infos[at].dom_kind(), schedule.get_loops(blocks[at])
    *texels, lanes = loops[: kinds.count("S")]
    if "O" in kinds or "RS" in kinds or len(loops) != len(kinds) or not texels or schedule.get(lanes).extent != 4:
        return None
    schedule.reverse_compute_at(schedule.cache_write(blocks[at], 0, "local"), lanes)
    for last in blocks[at + 1 :][-1:]:
        schedule.reverse_compute_inline(last)
    _bind(schedule, texels)
    schedule.vectorize(lanes)
    return schedule


def _bind(schedule: Any, loops: Sequence[Any]) -> None:
    """Let each work-item take one step of these loops."""
    group, item = schedule.split(schedule.fuse(*loops), [None, _WORK_ITEMS])
    schedule.bind(group, "blockIdx.x")
    schedule.bind(item, "threadIdx.x")


def reductions_apart(mod: Any) -> Any:
    """Give every reduction of an image a kernel: there is a schedule into an image for one alone.

    Variances are means of squares; one over channels is no image.
    """
    means = rewrite_main(mod, any_of(("std", "variance"), operands=1), lambda call, _matched: _as_means(call))
    return reshape_reductions(means, kept_only=True)


def _as_means(call: Any) -> Any:
    (data,), axes = call.args, reduced_axes(call)
    if int(type_of(data).ndim) != 4 or 1 in axes:
        return call
    distance = relax.op.subtract(data, relax.op.mean(data, axes, keepdims=True))
    variance = relax.op.mean(relax.op.multiply(distance, distance), axes, keepdims=bool(call.attrs.keepdims))
    return variance if call.op.name == "relax.variance" else relax.op.sqrt(variance)


def fallback_by_texel(func: Any, target: Any) -> Any:
    """TVM's own fallback schedule for Adreno, which vectorises the lanes, for functions that write a texture.

    It raises at reductions, which here are kernels into buffers, and computes paddings whose rows end within texels.
    """
    if not writes_texture(func):
        return None
    schedule = s_tir.Schedule(func)
    *blocks, last = schedule.get_child_blocks(dlight.analysis.get_root_block(schedule))
    infos = [dlight.analysis.get_sblock_info(schedule, block) for block in blocks]
    reduces, results = any(info.is_reduction() for info in infos), [*parameter_buffers(func)]
    for block, info in zip(blocks, infos, strict=True):
        if info.is_reduction():
            _bind(schedule, schedule.get_loops(block)[: info.dom_kind().count("S")])
        elif not any(buffer_read(schedule.get(block).writes[0]).same_as(buffer) for buffer in results):
            schedule.compute_inline(block)  # a result of the function has to be stored
    if reduces:
        dlight.adreno.Fallback.schedule_default(schedule, last)
    return schedule if reduces else dlight.adreno.Fallback().apply(schedule.mod["main"], target, False)


QUIRKS = (
    Quirk(
        "reduction-part-read",
        "the GPU schedule for reductions raises where what follows a layer normalization reads a part of its rows, as "
        "the class token of a vision transformer",
        upstream="python/tvm/s_tir/dlight/gpu/reduction.py: reverse_compute_at of an epilogue that reads another "
        "region; src/s_tir/schedule/primitive/compute_at.cc: Check failed",
        workaround="functions at which the rule ends with an internal error get dlight's gpu.Fallback schedule",
        edits=Edits(relax=fallback_if(reads_a_part)),
    ),
    Quirk(
        "reduction-of-pairs",
        "the GPU schedule for reductions raises where a sum reads one tensor in two places, as distances between its "
        "elements, or comparisons of all with all",
        upstream="python/tvm/s_tir/dlight/analysis/common_analysis.py: collect_block_iter_vars_used_in_access_region "
        "asserts regions of one element",
        workaround="such functions get dlight's gpu.Fallback schedule",
        edits=Edits(relax=fallback_if(lambda trial, _func: isinstance(trial.error, AssertionError))),
    ),
    Quirk(
        "reduction-extents",
        "a mean, a sum or an average pool is padded at the end of its axes, or cut to their first element: all others "
        "write it as well, or the padding keeps what was there; behind a softmax it does not compile",
        upstream="src/relax/analysis/tir_op_pattern_kind.cc: what reads element i for element i is taken for "
        "elementwise, whatever its extents, and fused; python/tvm/s_tir/dlight/gpu/reduction.py runs it once for each "
        "result",
        workaround="such functions get dlight's gpu.Fallback schedule",
        edits=Edits(relax=fallback_if(changes_extents)),
    ),
    Quirk(
        "reduction-epilogue-private",
        "a 1x1 convolution in groups, fused with what follows it, reads what other work-items keep in private arrays",
        upstream="python/tvm/s_tir/dlight/gpu/reduction.py: _sch_inner_spatial binds the epilogue's loops in another "
        "order than the reduction's",
        workaround="what the epilogue reads is in local memory, which the work-items of a group share",
        edits=Edits(relax=put_first(reduction_with_shared_tile)),
    ),
    Quirk(
        "reduction-of-one",
        "what follows a reduction over a single element, such as the bias of a depthwise 1x1 convolution, is applied "
        "twice: to the start of the reduction, too",
        upstream="src/s_tir/schedule/primitive/compute_inline.cc: reverse_compute_inline puts the consumer into a "
        "block's init, too, once normalize_prim_func has dropped the axes of the reduction",
        workaround="such reductions become plain stores before TVM's rules see them",
        edits=Edits(
            relax=before_first(SCHEDULE, "ReduceNoSingleElements", reduce_no_single_elements, make=statement_pass)
        ),
    ),
    Quirk(
        "inner-reduction-tile",
        "a convolution in groups of several results, without padding at the top and left, is summed by work-items that "
        "share a loop over results: the build raises",
        upstream="python/tvm/s_tir/dlight/gpu/reduction.py: _sch_inner_reduction puts the loop over a group's results "
        "into that over work-items, which LowerCrossThreadReduction refuses",
        workaround="such functions get dlight's gpu.Fallback schedule",
        edits=Edits(relax=fallback_if(lambda trial, _func: trial.results != 1)),
    ),
    Quirk(
        "local-memory-overflow",
        "one work-group computes a convolution that is fused with a padding, and keeps the result in local memory: it "
        "takes several times as long, or ends in CL_OUT_OF_RESOURCES",
        upstream="python/tvm/s_tir/dlight/gpu/general_reduction.py: all results but the last are in shared memory, "
        "whatever their size",
        workaround="such functions get dlight's gpu.Fallback schedule",
        edits=Edits(relax=fallback_if(shares_results)),
    ),
    Quirk(
        "texture-average-pool",
        "average pools into a texture get a schedule that stores single numbers as texels",
        upstream="python/tvm/s_tir/dlight/adreno/pool.py knows pool_max and adaptive_pool_sum alone; fallback.py calls "
        "cache_write after decompose_reduction, which raises for every reduction along two axes",
        workaround="reductions that write a texture get a schedule of ours, as TVM's for max pools, and a kernel each",
        paths=("texture",),
        edits=Edits(model=reductions_apart, relax=put_first(reduction_by_texel)),
    ),
    Quirk(
        "texture-scalar-schedule",
        "element-wise operators into a texture (such as concat) get a schedule that stores single numbers as texels",
        upstream="python/tvm/relax/backend/adreno/pipeline.py: dlight's gpu.Fallback, where adreno.Fallback would be "
        "right",
        workaround="functions that write a texture get dlight's adreno.Fallback schedule, which vectorises the lanes",
        paths=("texture",),
        edits=Edits(relax=put_first(fallback_by_texel)),
    ),
    Quirk(
        "reduction-schedule-raises",
        "the GPU schedule for reductions raises on an average pool in NCHW4c, or a sum of what is spread "
        "(TopK as ranks), and nothing is compiled",
        upstream="python/tvm/s_tir/dlight/gpu/reduction.py: _sch_inner_spatial; 0.27 declines such shapes",
        until="0.27",
        workaround="functions at which the rule raises get dlight's gpu.Fallback schedule",
        edits=Edits(relax=put_first(fallback_if_reduction_raises)),
    ),
)
