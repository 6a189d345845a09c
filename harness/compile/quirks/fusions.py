"""Fused functions that TVM's schedules for Adreno leave in parts without threads, or vectorise wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.compile.compiler.compat import (
    buffer_read,
    dlight,
    dtype_of,
    operator_name,
    parameter_buffers,
    rebind_main,
    relax,
    s_tir,
    tirx,
    touches_texture,
    tuple_fields,
    type_of,
    with_main,
)
from harness.compile.compiler.passes import Passes, before, before_first, insert_before, insert_before_first, own_pass
from harness.compile.compiler.tir import (
    SCHEDULE,
    function_pass,
    has_threads,
    is_block,
    map_children,
    mark_scheduled,
    new_block,
    parts_of,
    statement_pass,
    unbound_blocks,
    walk,
    with_block,
    with_body,
)
from harness.compile.paths.base import Edits
from harness.compile.quirks.base import Quirk
from harness.compile.quirks.kernel_source import hide_dividends, show_dividends
from harness.compile.quirks.texels import spread_numbers

AFTER_SCHEDULES = "RewriteDataflowReshape"
"""The pass that follows the schedules."""
_CONV = "conv2d_NCHWc"
"""In the names of blocks for which `dlight.adreno.Conv2d` is."""
_OWN_RULE = ("if_then_else", "reinterpret", "texture2d_load")
"""Operators for which the vectoriser has rules of its own."""
_FREE, _ENDS = 2, 3
"""`op_pattern` of functions that TVM fuses with what is behind them, and of a reduction, which ends its kernel."""
LONGEST, _CONDITION, _CHOICE = 400_000, 400, 50_000
"""Longest expression that another kernel may repeat, in variables, numbers and operators, and how many a condition and
a choice between two numbers are worth. TVM's passes take so much longer for them: twice as long for each choice that
stands in the condition of another."""
Rewrite = Callable[[Any], Any]
"""Takes a function of TIR and returns it, changed or not."""


def schedule_whole(passes: Passes) -> Passes:
    """Inline what several blocks read before any schedule, and schedule afterwards what is still left."""
    passes = insert_before_first(passes, SCHEDULE, _image_pass("InlineSharedBlocks", _inline_shared))
    return insert_before(passes, AFTER_SCHEDULES, _image_pass("ScheduleLeftBlocks", _schedule_left))


def skip_threaded(passes: Passes) -> Passes:
    """Before any schedule, mark functions that come with threads of their own and without a block `root` as scheduled.

    One that has it, and other blocks beside its threads (ScatterND), TVM's rules schedule.
    """

    def rewrite(function: Any) -> Any:
        rooted = is_block(function.body) and function.body.block.name_hint == "root"
        return mark_scheduled(function) if has_threads(function) and not rooted else function

    return insert_before_first(passes, SCHEDULE, _relax_stage_pass("SkipThreaded", rewrite))


def bound_fusions(mod: Any) -> Any:
    """Let a function end its kernel if what it computes is too long: each of its readers would compute it again."""
    builder, lengths = relax.BlockBuilder(mod), dict[Any, int]()

    def bind(binding: Any) -> Any:
        call = binding.value
        function = mod[call.args[0]] if operator_name(call) == "relax.call_tir" else None
        if function is None or int((function.attrs or {}).get("op_pattern", _ENDS)) > _FREE:
            return binding
        parts = [part for store in walk(function.body) if hasattr(store, "value") for part in parts_of(store.value)]
        loads = [buffer for buffer in map(buffer_read, parts) if buffer is not None]
        conditions = sum(operator_name(part).endswith("if_then_else") for part in parts)
        own = len(parts) + _CONDITION * conditions + _CHOICE * sum(isinstance(part, tirx.Select) for part in parts)
        repeated = 0
        for buffer, tensor in zip(parameter_buffers(function), call.args[1].fields, strict=False):  # written ones last
            repeated += sum(map(buffer.same_as, loads)) * lengths.get(tensor, 0)
        if not repeated or own + repeated <= LONGEST:
            lengths[binding.var] = own + repeated
            return binding
        end, kind = builder.add_func(function.with_attr("op_pattern", _ENDS), call.args[0].name_hint), type_of(call)
        kinds = list(tuple_fields(kind) or ()) or kind
        return relax.VarBinding(binding.var, relax.call_tir(end, call.args[1], kinds, *call.args[2:]))

    main = rebind_main(mod, bind)["main"]
    return relax.transform.Normalize()(with_main(builder.get(), main))


def _image_pass(name: str, rewrite: Rewrite) -> Any:
    """Return a pass over the functions that read or write an image."""
    return _relax_stage_pass(name, lambda function: rewrite(function) if touches_texture(function) else function)


def _relax_stage_pass(name: str, rewrite: Rewrite) -> Any:
    """Return a pass over the functions of TIR that keeps their order, which is that of the kernels in the source."""

    def run(mod: Any) -> Any:
        for variable, function in mod.functions_items():
            if isinstance(function, tirx.PrimFunc):
                mod.update_func(variable, rewrite(function))
        return mod

    return own_pass(name, run)


def _inline_shared(function: Any) -> Any:
    """If a result has too many readers for dlight, inline all element-wise blocks that only such blocks read.

    At an element-wise block with one producer and several readers `schedule_inline_blocks` leaves its loop; of a pool
    with several readers `Pool2D` inlines each as if it was the only one. From the last block to the first, as inlining
    one gives those before it more readers. `NormalizePrimFunc` makes other places of dividends that inlining puts
    together, as `flattened-index` says: they are hidden until there is a schedule. The schedule of a reduction needs
    their bounds, so with one, blocks that divide are not inlined.
    """
    schedule = s_tir.Schedule(function)
    blocks = schedule.get_child_blocks(dlight.analysis.get_root_block(schedule))
    readers = {block: schedule.get_consumers(block) for block in blocks}

    def info(block: Any) -> Any:
        return dlight.analysis.get_sblock_info(schedule, block)

    def element_wise(block: Any) -> bool:
        return bool(info(block).is_injective() and not info(block).is_data_pad(schedule))

    inner = [block for block in blocks if schedule.get_producers(block) and element_wise(block)]
    pools = [block for block in blocks if info(block).is_reduction() and _CONV not in info(block).name]
    if all(len(readers[block]) < 2 for block in (*inner, *pools)):
        return function
    reduces = any(info(block).is_reduction() for block in blocks)

    def divides(block: Any) -> bool:
        parts = parts_of(schedule.get(block).body.value)
        return any(isinstance(part, (tirx.FloorDiv, tirx.FloorMod)) for part in parts)

    inner = [block for block in inner if not (reduces and divides(block))]
    inlined = [block for block in inner if readers[block] and all(map(element_wise, readers[block]))]
    for block in reversed(inlined):
        schedule.compute_inline(block)
    inline = schedule.mod["main"]
    return inline if reduces else inline.with_body(hide_dividends(inline.body))


def read_apart(function: Any) -> Any:
    """Let the convolution read a copy, which dlight inlines, so that its cache of the input has no other reader."""
    schedule = s_tir.Schedule(function)
    blocks = schedule.get_child_blocks(dlight.analysis.get_root_block(schedule))
    reads = {block.name_hint: [buffer_read(region) for region in block.reads] for block in map(schedule.get, blocks)}
    for conv in (name for name in reads if name.startswith(_CONV)):
        others = [buffer for name, buffers in reads.items() if name != conv for buffer in buffers]
        if any(reads[conv][0].same_as(buffer) for buffer in others):
            block = schedule.get_sblock(conv)
            schedule.cache_read(block, 0, "global", consumer_blocks=[block])
    return schedule.mod["main"]


def _schedule_left(function: Any) -> Any:
    """Give blocks without threads a kernel of their own, with dlight's default for Adreno."""
    schedule, names = s_tir.Schedule(function), unbound_blocks(function)
    for name in names:
        dlight.adreno.Fallback.schedule_default(schedule, schedule.get_sblock(name))
    scheduled = schedule.mod["main"] if names else function
    return scheduled.with_body(show_dividends(scheduled.body))


def collect_lanes(function: Any) -> Any:
    """Split each store that no vector can compute: lane by lane into private memory, and from there into the image."""
    scalar = any(_is_scalar(part) or _gathers(part) for part in walk(function.body))
    return function.with_body(_split_stores(function.body)) if scalar else function


def _split_stores(statement: Any) -> Any:
    """Two loops in a row share variables, which TVM's passes allow."""
    loop = map_children(statement, _split_stores)
    if not isinstance(loop, tirx.For) or loop.kind != tirx.ForKind.VECTORIZED:
        return loop
    stores = [part for part in walk(loop.body) if _is_scalar(part)]
    if not stores:
        return _reduce_by_lane(loop)
    (realize,) = stores
    store = realize.block.body
    lanes = tirx.decl_buffer((loop.extent,), dtype_of(store.buffer), name="lanes", scope="local")
    lane = store.indices[-1]
    by_lane = with_block(realize, tirx.BufferStore(lanes, store.value, [lane]), realize.block.alloc_buffers)
    at_once = with_block(realize, tirx.BufferStore(store.buffer, tirx.BufferLoad(lanes, [lane]), store.indices), [])

    def replace(part: Any) -> Any:
        return by_lane if part.same_as(realize) else map_children(part, replace)

    one_by_one = tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, replace(loop.body))
    return new_block(tirx.SeqStmt([one_by_one, with_body(loop, at_once)]), [lanes])


def _reduce_by_lane(loop: Any) -> Any:
    """Let the steps of a reduction that gather texels run lane by lane, before the loop that stores one."""
    *steps, store = loop.body if isinstance(loop.body, tirx.SeqStmt) else [loop.body]
    if not any(_gathers(part) for step in steps for part in walk(step)):
        return loop
    body = tirx.SeqStmt(steps) if len(steps) > 1 else steps[0]
    one_by_one = tirx.For(loop.loop_var, loop.min, loop.extent, tirx.ForKind.SERIAL, body)
    return tirx.SeqStmt([one_by_one, with_body(loop, store)])


def _gathers(part: Any) -> bool:
    """Return whether this is a block that stores numbers of several texels in private memory."""
    store = _store_into("local", part)
    return store is not None and any(_is_apart(load, store.indices[-1]) for load in parts_of(store.value))


def _is_scalar(part: Any) -> bool:
    """Return whether this is a block that stores what no vector can compute into an image."""
    store = _store_into("texture", part)
    if store is None:
        return False
    lane, parts = store.indices[-1], [*parts_of(store.value)]
    return not any(map(lane.same_as, parts)) or not all(_has_vector_form(each, lane) for each in parts)


def _store_into(memory: str, part: Any) -> Any:
    """Return the store of a block into memory of this kind; None for all else."""
    store = part.block.body if is_block(part) else None
    return store if isinstance(store, tirx.BufferStore) and memory in str(store.buffer.scope()) else None


def _has_vector_form(part: Any, lane: Any) -> bool:
    """Return whether the vectoriser takes it: by its own rule, or by what the operator says of itself."""
    buffer = buffer_read(part)
    if buffer is not None and dtype_of(buffer) == "bool":
        return False  # OpenCL has no vectors of them
    if _is_apart(part, lane):
        return False
    if not hasattr(part, "op"):
        return True
    name = part.op.name.rpartition(".")[2]
    if name == "if_then_else" and any(map(lane.same_as, parts_of(part.args[0]))):
        return False  # a padding that ends within a texel
    return bool(part.op.get_attr("TVectorizable")) or name in _OWN_RULE


def _is_apart(part: Any, lane: Any) -> bool:
    """Return whether this loads four numbers that are neither a texel in its own order nor one of its lanes."""
    buffer = buffer_read(part)
    if buffer is None or "texture" not in str(buffer.scope()):
        return False
    *place, of_texel = part.indices
    varying = place if lane.same_as(of_texel) else part.indices
    return any(lane.same_as(each) for index in varying for each in parts_of(index))


_COLLECT = before("TextureFlatten", "StoreWholeTexels", collect_lanes, make=function_pass)
_SPREAD = before("VectorizeLoop", "SpreadNumbers", spread_numbers, make=statement_pass)
QUIRKS = (
    Quirk(
        "fusion-repeats",
        "in a fused kernel a result is computed anew for each of its readers, which doubles with each step: a chain of "
        "17 SiLU is 19 MB of OpenCL C, and takes minutes to compile",
        upstream="src/relax/transform/fuse_ops.cc: fuses element-wise functions whatever reads them; the schedules of "
        "dlight inline each into all of its readers",
        workaround="a function whose expression has more than 400,000 parts, with all that it repeats, ends its "
        "kernel; a choice between two numbers counts as 20,000",
        paths=("opencl", "texture", "clml"),
        edits=Edits(relax=before("FuseOps", "BoundFusions", bound_fusions)),
    ),
    Quirk(
        "opaque-kernel-schedule",
        "a function that comes with threads of its own (ScatterElements) stops the rule for pools: `ScheduleError` in "
        "`get-block`",
        upstream='python/tvm/s_tir/dlight/adreno/pool.py: get_sblock(name="root") before it looks for a pool',
        workaround="such functions, if they have no block `root`, are marked as scheduled",
        edits=Edits(relax=skip_threaded),
    ),
    Quirk(
        "texture-left-blocks",
        "what follows a convolution and reads a result twice (SiLU, GELU or Elu of a bias), or spreads it (squeeze and "
        "excitation), is left without threads: `unknown intrinsic`, or the host's process dies",
        upstream="python/tvm/s_tir/dlight/adreno/fallback.py: schedule_inline_blocks leaves its loop with `break` when "
        "it has inlined a block with several readers, or cannot inline one",
        workaround="blocks with several readers are inlined before any schedule; what is left is a kernel of its own",
        paths=("texture",),
        edits=Edits(relax=schedule_whole),
    ),
    Quirk(
        "texture-shared-input",
        "a 1x1 convolution, fused with the addition of its own input (a residual block without batch norms), cannot be "
        "scheduled: `requires all the consumer(s)`",
        upstream="python/tvm/s_tir/dlight/adreno/convolution.py: cache_read without consumer_blocks redirects every "
        "reader of the input",
        workaround="the convolution reads a copy of its input, which dlight inlines",
        paths=("texture",),
        edits=Edits(relax=before_first(SCHEDULE, "ReadInputApart", read_apart, make=_image_pass)),
    ),
    Quirk(
        "texture-scalar-call",
        "an operator without a vector form (`erf` of GELU, `rsqrt`) is stored lane by lane over the whole texel: wrong "
        "results; a texel of numbers from elsewhere (a volume that is turned or repeated), or of one number (`x - x`), "
        "does not compile",
        upstream="src/tirx/op/op.cc: erf, rsqrt, log1p and more lack TVectorizable; vectorize_loop.cc then serialises "
        "the loop around the store",
        workaround="the lanes are collected in private memory, and stored at once; one number is repeated",
        paths=("texture",),
        edits=Edits(tir=lambda passes: _SPREAD(_COLLECT(passes))),
    ),
)
