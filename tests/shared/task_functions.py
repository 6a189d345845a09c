"""Functions of a network before they have a schedule, and what tests do with the schedules of one."""

from __future__ import annotations

import json
from typing import Any

from harness.compile.compiler.compat import tir_function
from harness.compile.paths import PATHS
from harness.compile.paths.base import ImageLimits
from harness.compile.schedules.trace import check, plain

SOURCE = """
@T.prim_func(private=True, s_tir=True)
def add({name}: T.Buffer((T.int64(64),), "float32"), made: T.Buffer((T.int64(64),), "float32"{scope})):
    for i in range(T.int64(64)):
        with T.sblock("add"):
            at = T.axis.spatial(T.int64(64), i)
            made[at] = {name}[at] + T.float32({number})
"""


def function(name: str = "a", number: int = 1, scope: str = "") -> Any:
    place = f', scope="{scope}"' if scope else ""
    return tir_function(SOURCE.format(name=name, number=number, scope=place))


def target() -> Any:
    return PATHS["opencl"].target(ImageLimits(), None)


def trace_of(made: Any) -> Any:
    return check(json.loads(json.dumps(plain(made.trace.as_json()))))


CONV = """
@T.prim_func(private=True, s_tir=True)
def conv(x: T.Buffer((T.int64(1), T.int64(2), T.int64(10), T.int64(10), T.int64(4)), "float32"),
         w: T.Buffer((T.int64(4), T.int64(8), T.int64(3), T.int64(3), T.int64(1), T.int64(4)), "float32"),
         y: T.Buffer((T.int64(1), T.int64(4), T.int64(8), T.int64(8), T.int64(4)), "float32")):
    for n, o, h, v, b, c, i, j in T.grid(T.int64(1), T.int64(4), T.int64(8), T.int64(8), T.int64(4), T.int64(8),
                                         T.int64(3), T.int64(3)):
        with T.sblock("conv2d_NCHWc_OIHWo"):
            vn, vo, vh, vv, vb, vc, vi, vj = T.axis.remap("SSSSSRRR", [n, o, h, v, b, c, i, j])
            with T.init():
                y[vn, vo, vh, vv, vb] = T.float32(0)
            y[vn, vo, vh, vv, vb] = y[vn, vo, vh, vv, vb] + x[vn, vc // T.int64(4), vh + vi, vv + vj,
                vc % T.int64(4)] * w[vo, vc, vi, vj, T.int64(0), vb]
"""
MATMUL = """
@T.prim_func(private=True, s_tir=True)
def matmul(x: T.Buffer((T.int64(64), T.int64(48)), "float32"), w: T.Buffer((T.int64(48), T.int64(96)), "float32"),
           y: T.Buffer((T.int64(64), T.int64(96)), "float32")):
    for i, j, k in T.grid(T.int64(64), T.int64(96), T.int64(48)):
        with T.sblock("matmul"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                y[vi, vj] = T.float32(0)
            y[vi, vj] = y[vi, vj] + x[vi, vk] * w[vk, vj]
"""
