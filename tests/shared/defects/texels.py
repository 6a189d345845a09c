"""Probes of lanes of a texel that TVM loses."""

from __future__ import annotations

import re

from defects.presence import presence
from defects.sample import Probe, all_but, conv, mask, max_pool, source
from harness.compile.paths.base import Workaround
from harness.compile.paths.kernels import kernels
from harness.tools.upstream.probe_answer import Presence, ProbeAnswer

_BOOL_CAST = "vector-bool-cast"
SERIAL_STORE = re.compile(r"for \(int (\w+) = 0; \1 < 4; \+\+\1\) \{[^{}]*write_image")


def _lanes_of_max_pool(*applied: Workaround) -> ProbeAnswer:
    """Look whether a max pool in NCHW4c accumulates four lanes in one number."""
    pool = "".join(k.body for k in kernels(source(max_pool(), applied)) if k.name.startswith("max_pool2d"))
    buffer = re.search(r"(float4?) \w+_local\w*\[(\d+)\];", pool)
    if not buffer:
        return ProbeAnswer(Presence.CANNOT_TELL, "the max pool has no local buffer")
    lanes = (4 if buffer.group(1) == "float4" else 1) * int(buffer.group(2))
    return presence(lanes < 4, f"four lanes of a max pool accumulate in `{buffer.group()}`")


def _serial_stores(*applied: Workaround) -> ProbeAnswer:
    """Look whether the lanes of a texel are stored one after the other, each over the whole texel."""
    text = source(conv(), applied)
    if SERIAL_STORE.search(text):
        return presence(True, "a loop over four lanes stores a whole texel each time; the last lane wins")
    if "write_image" in text:
        return presence(False, "each texel is stored once")
    return ProbeAnswer(Presence.CANNOT_TELL, "no kernel stores into an image")


def _minus_ones(*applied: Workaround) -> ProbeAnswer:
    """Look whether the comparison of four lanes, which is -1 where it holds, is converted as it is.

    It becomes a vector once nothing else is wrong with it.
    """
    text = source(mask(), (*all_but(_BOOL_CAST), *applied))
    converted, chosen = re.search(r"convert_float4\([^;]*[<>]", text), "where" in text
    return presence(
        bool(converted) and not chosen, "a comparison of vectors is converted as it is", "a number is chosen by it"
    )


PROBES: dict[str, Probe] = {
    _BOOL_CAST: _minus_ones,
    "vectorized-alloc": _lanes_of_max_pool,
    "texture-store-broadcast": _serial_stores,
}
