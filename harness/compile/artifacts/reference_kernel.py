"""The reference kernel, compiled: a loop of dependent multiplications and additions whose length is an input.

`harness.measure.probes.reference` times it in each session; it belongs to no model, and TVM's plain path compiles it
without any workaround.
"""

from __future__ import annotations

import time
import zlib
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.compile.artifacts.artifact import CRC, LIBRARY, CompileResult
from harness.compile.artifacts.compile import build_module, export
from harness.compile.compiler.compat import relax, tensor_type, tir_function
from harness.compile.paths import PATHS
from harness.compile.paths.base import ImageLimits

THREADS = 512

_SOURCE = f"""
@T.prim_func(private=True)
def spin(turns: T.Buffer((1,), "int32"), result: T.Buffer(({THREADS},), "float32")):
    T.func_attr({{"tirx.is_scheduled": True, "tir.is_scheduled": True}})
    for block in T.thread_binding({THREADS // 64}, thread="blockIdx.x"):
        for thread in T.thread_binding(64, thread="threadIdx.x"):
            value = T.alloc_buffer((1,), "float32", scope="local")
            value[0] = T.Cast("float32", thread)
            for turn in range(turns[0]):
                value[0] = value[0] * T.float32(0.999) + T.float32(0.5)
            result[block * 64 + thread] = value[0]
"""


def compile_reference(host_triple: str | None, out_dir: Path) -> CompileResult:
    """Compile the reference kernel on TVM's plain path, for devices of this LLVM triple; None for this machine's."""
    started = time.perf_counter()
    path = PATHS["opencl"]
    target = path.target(ImageLimits(), host_triple)
    built = build_module(path, path.lower(_module(), target, ()), target, ())
    export(built.executable, out_dir / LIBRARY, host_triple)
    return CompileResult(
        library=LIBRARY,
        vdevices=1,
        inputs=[("turns", [1], "int32")],
        outputs=1,
        quirks=[],
        facts={**asdict(path.facts(built)), CRC: zlib.crc32(built.source.encode())},
        compile_s=time.perf_counter() - started,
    )


def _module() -> Any:
    builder = relax.BlockBuilder()
    turns = relax.Var("turns", tensor_type((1,), "int32"))
    spin = builder.add_func(tir_function(_SOURCE), "spin")
    with builder.function("main", [turns]):
        with builder.dataflow():
            call = relax.call_tir(spin, [turns], tensor_type((THREADS,), "float32"))
            result = builder.emit_output(call)
        builder.emit_func_output(result)
    return builder.get()
