"""What the probes of TVM's tuner have in common: none of these defects is in what a path builds."""

from __future__ import annotations

from typing import Any

from harness.compiler.compat import tir_function
from harness.compiler.tuner import without_intrinsics

PATHS = ("tune",)
"""In place of a path: `adreno-bench tune` alone meets these, so no case is built with a workaround for them."""

_COPY = """
@T.prim_func(private=True, s_tir=True)
def main(x: T.Buffer((T.int64(1), T.int64(8), T.int64(8), T.int64(8), T.int64(4)), "float32"),
         y: T.Buffer((T.int64(1), T.int64(8), T.int64(8), T.int64(8), T.int64(4)), "float32", scope="global.texture")):
    for n, c, h, w, b in T.grid(T.int64(1), T.int64(8), T.int64(8), T.int64(8), T.int64(4)):
        with T.{block}("copy"):
            vn, vc, vh, vw, vb = T.axis.remap("SSSSS", [n, c, h, w, b])
            y[vn, vc, vh, vw, vb] = x[vn, vc, vh, vw, vb] + T.float32(1)
"""


def into_image() -> Any:
    """A module of one function that writes an image, without a schedule."""
    import tvm
    from tvm.script import tirx as script

    block = "sblock" if hasattr(script, "sblock") else "block"
    return tvm.IRModule({"main": tir_function(_COPY.replace("{block}", block)).with_attr("global_symbol", "main")})


def designs(mod: Any, target: Any) -> Any:
    """What the tuner's own rules make of a function."""
    with without_intrinsics():
        from tvm.s_tir import meta_schedule

        context = meta_schedule.TuneContext(mod, target=target, space_generator="post-order-apply", num_threads=1)
    return context.generate_design_space()
