"""A local buffer that is allocated inside a vectorised loop is not widened."""

from __future__ import annotations

import re
from typing import Any

from harness.compiler.passes import Passes, insert_before
from harness.compiler.statements import is_block, map_children, new_block, statement_pass, with_block, with_body
from harness.paths.kernels import kernels
from harness.paths.workaround import Edits
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import max_pool, source


def probe(*applied: Quirk) -> ProbeAnswer:
    """Look whether a max pool in NCHW4c accumulates four lanes in one number."""
    pool = "".join(k.body for k in kernels(source(max_pool(), applied)) if k.name.startswith("max_pool2d"))
    buffer = re.search(r"(float4?) \w+_local\w*\[(\d+)\];", pool)
    if not buffer:
        return ProbeAnswer(Presence.CANNOT_TELL, "the max pool has no local buffer")
    lanes = (4 if buffer.group(1) == "float4" else 1) * int(buffer.group(2))
    state = Presence.ABSENT if lanes >= 4 else Presence.PRESENT
    return ProbeAnswer(state, f"four lanes of a max pool accumulate in `{buffer.group()}`")


def allocate_outside(passes: Passes) -> Passes:
    """Move such allocations around the loop, before TVM shrinks buffers to what one iteration of it touches."""
    work = statement_pass("adreno_bench.AllocateOutsideVectorizedLoops", _outside)
    return insert_before(passes, "ConvertBlocksToOpaque", work)


def _outside(statement: Any) -> Any:
    from tvm import tirx

    statement = map_children(statement, _outside)
    if not isinstance(statement, tirx.For) or statement.kind != tirx.ForKind.VECTORIZED or not is_block(statement.body):
        return statement
    block = statement.body.block
    if not block.alloc_buffers:
        return statement
    return new_block(with_body(statement, with_block(statement.body, block.body, [])), block.alloc_buffers)


QUIRK = Quirk(
    id="vectorized-alloc",
    title="a local buffer inside a vectorised loop keeps one lane: max pools in NCHW4c mix their channels up",
    upstream="src/tirx/transform/vectorize_loop.cc; the schedule is python/tvm/s_tir/dlight/adreno/pool.py",
    since="0.25",
    paths=("texture",),
    probe=probe,
    workaround="the buffer is allocated around the loop, with room for every lane",
    edits=Edits(tir=allocate_outside),
)
