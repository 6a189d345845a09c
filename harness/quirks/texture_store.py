"""A vectorised store into a texture writes one lane over all four."""

from __future__ import annotations

import re
from typing import Any

from harness.compiler.passes import Passes, insert_before
from harness.compiler.statements import map_children, statement_pass
from harness.paths.workaround import Edits
from harness.quirks.base import Presence, ProbeAnswer, Quirk
from harness.quirks.sample import conv, source

_STORE = "tirx.texture2d_store"
_SERIAL_STORE = re.compile(r"for \(int (\w+) = 0; \1 < 4; \+\+\1\) \{[^{}]*write_image")


def probe(*applied: Quirk) -> ProbeAnswer:
    """Look whether the lanes of a texel are stored one after the other, each over the whole texel."""
    text = source(conv(), applied)
    if _SERIAL_STORE.search(text):
        return ProbeAnswer(
            Presence.PRESENT, "a loop over four lanes stores a whole texel each time; the last lane wins"
        )
    if "write_image" in text:
        return ProbeAnswer(Presence.ABSENT, "each texel is stored once")
    return ProbeAnswer(Presence.CANNOT_TELL, "no kernel stores into an image")


def give_stores_a_number_type(passes: Passes) -> Passes:
    """Before the vectoriser, type texture stores as int32 instead of void.

    The vectoriser widens the stored value of a texture store as it should, but since 0.26 calls without a number type
    leave it through an earlier branch. The code generator writes a store as a statement and never looks at its type.
    """
    return insert_before(passes, "VectorizeLoop", statement_pass("adreno_bench.TypeTextureStores", _typed))


def _typed(statement: Any) -> Any:
    import tvm
    from tvm import tirx

    store = tvm.ir.Op.get(_STORE)
    if isinstance(statement, tirx.Evaluate) and getattr(statement.value, "op", None) == store:
        return tirx.Evaluate(tirx.call_intrin("int32", _STORE, *statement.value.args))
    return map_children(statement, _typed)


QUIRK = Quirk(
    id="texture-store-broadcast",
    title="vectorised stores into textures are serialised, and one lane fills the whole texel: wrong results",
    upstream="src/tirx/transform/vectorize_loop.cc, calls without a PrimType; since adf8d6a463 (#19944)",
    since="0.26",
    paths=("texture",),
    probe=probe,
    workaround="texture stores are typed int32 before VectorizeLoop, which then widens their value",
    edits=Edits(tir=give_stores_a_number_type),
)
