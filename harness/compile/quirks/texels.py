"""Passes of TVM's that lose lanes of a texel: wrong answers of path `texture`."""

from __future__ import annotations

from functools import partial
from typing import Any

from harness.compile.compiler.compat import (
    dtype_of,
    kind_of,
    map_parts,
    operator_name,
    relax,
    rewrite_main,
    tirx,
    type_of,
)
from harness.compile.compiler.passes import before
from harness.compile.compiler.tir import (
    is_block,
    map_children,
    new_block,
    parts_of,
    statement_pass,
    with_block,
    with_body,
)
from harness.compile.paths.base import Edits
from harness.compile.quirks.base import Quirk
from harness.compile.quirks.layouts import any_of

_STORE = "tirx.texture2d_store"


def allocate_outside(statement: Any) -> Any:
    """Move allocations in a vectorised loop around it, before TVM shrinks buffers to what one iteration touches."""
    statement = map_children(statement, allocate_outside)
    if not isinstance(statement, tirx.For) or statement.kind != tirx.ForKind.VECTORIZED or not is_block(statement.body):
        return statement
    block = statement.body.block
    if not block.alloc_buffers:
        return statement
    return new_block(with_body(statement, with_block(statement.body, block.body, [])), block.alloc_buffers)


def type_stores(statement: Any) -> Any:
    """Type texture stores as int32 instead of void.

    The vectoriser widens the stored value of a texture store as it should, but since 0.26 calls without a number type
    leave it through an earlier branch. The code generator writes a store as a statement and never looks at its type.
    """
    store = _stored(statement)
    return map_children(statement, type_stores) if store is None else _store(*store.args)


def spread_numbers(statement: Any) -> Any:
    """Repeat a number that is the same in each lane of a texel, such as what TVM's passes leave of `x - x`."""
    loop = map_children(statement, spread_numbers)
    if not isinstance(loop, tirx.For) or loop.kind != tirx.ForKind.VECTORIZED:
        return loop

    def spread(part: Any) -> Any:
        store = _stored(part)
        if store is None or any(map(loop.loop_var.same_as, parts_of(store.args[-1]))):
            return map_children(part, spread)
        return _store(*store.args[:-1], tirx.Broadcast(store.args[-1], int(loop.extent)))

    return with_body(loop, spread(loop.body))


def _stored(statement: Any) -> Any:
    """Return the call that stores a texel; None for another statement."""
    call = statement.value if isinstance(statement, tirx.Evaluate) else None
    return call if operator_name(call) == _STORE else None


def _store(*operands: Any) -> Any:
    return tirx.Evaluate(tirx.call_intrin("int32", _STORE, *operands))


def choose_numbers(mod: Any) -> Any:
    """Write casts of bools to numbers as a choice between 1 and 0, and of numbers to bools as a comparison with 0."""
    return rewrite_main(mod, any_of(("astype",), operands=1), lambda call, _matched: _as_choice(call))


def _as_choice(call: Any) -> Any:
    (data,), dtype = call.args, dtype_of(type_of(call))
    source = dtype_of(type_of(data))
    if (source == "bool") == (dtype == "bool"):
        return call
    if dtype == "bool":
        return relax.op.not_equal(data, relax.const(0, source))
    return relax.op.where(data, *(relax.const(number, dtype) for number in (1, 0)))


def choose_in_vectors(statement: Any) -> Any:
    """Write casts of comparisons to numbers as a choice between 1 and 0, also in the condition of TVM's `where`.

    Bools that are loaded are bytes of 1 and 0, of which a choice between vectors would take another bit. Outside of
    vectors casts stay: TVM's passes take minutes for choices in the conditions of others.
    """

    def rewrite(cast: Any) -> Any:
        source, kind = kind_of(cast.value), kind_of(cast)
        loaded = any(hasattr(part, "indices") and kind_of(part) == "bool" for part in parts_of(cast.value))
        if source != "bool" or kind == "bool" or loaded:
            return cast
        return tirx.Select(cast.value, tirx.const(1, kind), tirx.const(0, kind))

    if isinstance(statement, tirx.For) and statement.kind == tirx.ForKind.VECTORIZED:
        return map_parts(statement, (tirx.Cast,), rewrite)
    return map_children(statement, choose_in_vectors)


def choose_whole_vectors(body: Any) -> Any:
    """Branch by a condition that holds for all numbers of a vector, once loops are vectors.

    A choice between vectors takes the first bit of each number, and such a condition is 1 in all of them.
    """

    def rewrite(choice: Any) -> Any:
        if not isinstance(choice.condition, tirx.Broadcast):
            return choice
        return tirx.if_then_else(choice.condition.value, choice.true_value, choice.false_value)

    return map_parts(body, (tirx.Select,), rewrite)


_row = partial(Quirk, paths=("texture",))
_IN_VECTORS = before("VectorizeLoop", "ChooseInVectors", choose_in_vectors, make=statement_pass)
_WHOLE = before("InjectVirtualThread", "ChooseWholeVectors", choose_whole_vectors, make=statement_pass)
QUIRKS: tuple[Quirk, ...] = (
    _row(
        "vector-bool-cast",
        "a comparison of a texel's four numbers, cast to numbers, is -1 where it is true, numbers between -1 and 1, "
        "cast to bools, are false, and a choice by one condition for all four takes the other side",
        upstream="src/target/source/codegen_c.cc: VisitExpr_(const CastNode*) converts what OpenCL compares, whose "
        "vectors have all bits set for true, and has no vectors of bools, but of bytes",
        workaround="such a cast is a choice between 1 and 0, or a comparison with 0, and such a choice a branch",
        edits=Edits(model=choose_numbers, tir=lambda passes: _WHOLE(_IN_VECTORS(passes))),
    ),
    _row(
        "vectorized-alloc",
        "a local buffer inside a vectorised loop keeps one lane: max pools in NCHW4c mix their channels up",
        upstream="src/tirx/transform/vectorize_loop.cc; the schedule is python/tvm/s_tir/dlight/adreno/pool.py",
        workaround="the buffer is allocated around the loop, with room for every lane",
        edits=Edits(
            tir=before("ConvertBlocksToOpaque", "AllocateOutsideVectorizedLoops", allocate_outside, make=statement_pass)
        ),
    ),
    _row(
        "texture-store-broadcast",
        "vectorised stores into textures are serialised, and one lane fills the whole texel: wrong results",
        upstream="src/tirx/transform/vectorize_loop.cc, calls without a PrimType; since adf8d6a463 (#19944)",
        since="0.26",
        workaround="texture stores are typed int32 before VectorizeLoop, which then widens their value",
        edits=Edits(tir=before("VectorizeLoop", "TypeTextureStores", type_stores, make=statement_pass)),
    ),
)
