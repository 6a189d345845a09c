"""The reference kernel: the same fixed work in every session, once as it is and once with 1.3 times the turns.

Its time has nothing to do with any model. If it moved between two runs, the rig moved; if the one with more turns does
not take longer, this rig cannot show that anything is slower. The kernel is a loop of dependent multiplications and
additions whose length is an input, so both are the same code.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from device_runner.failures import Failure

if TYPE_CHECKING:
    from device_runner.device import Array, Program, Session
    from harness.build.compile import Compiled
    from harness.build.pool import Artifact
    from harness.cases.plan import Plan
    from harness.run.runner import Built, Run

THREADS = 512
TURNS = 8192
FACTOR = 1.3
"""How many times more turns the slowed one makes; docs/records.md says so of `slowed_ms`."""
SAMPLES = 6
"""Of each."""
ORDER = ((TURNS, SAMPLES // 2), (round(TURNS * FACTOR), SAMPLES), (TURNS, SAMPLES // 2))
"""Turns and samples: the slowed one lies in the middle, so that a drifting clock makes it no slower or faster."""
TIMEOUT_S = 20.0
CRC = "source_crc32"
"""Name of the fact that tells one release's code of this kernel from another's."""

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


@dataclass(frozen=True)
class Reference:
    """Both times of the reference kernel in one session, by the device's timer, in ms."""

    reference: str
    """Which kernel: two sessions may be compared where this text is the same."""
    reference_ms: list[float]
    slowed_ms: list[float]


@dataclass(frozen=True)
class ReferenceKernel:
    """The kernel, made ready for a device."""

    artifact: Artifact
    binaries: Path
    """The device's own compilation of it, which would take longer than all samples."""

    def measure(self, session: Session) -> Reference | None:
        """Time it in a session that has done its case; None if that fails, which is not the case's fault."""
        ends = time.monotonic() + TIMEOUT_S
        try:
            program = session.load(self.artifact.loadable, timeout_s=TIMEOUT_S)
            program.use_binaries(self.binaries.read_bytes(), timeout_s=ends - time.monotonic())
            taken = [_samples(program, turns, count, ends) for turns, count in ORDER]
        except (Failure, OSError):
            return None
        before, slowed, after = taken
        return Reference(kernel_of(self.artifact), before + after, slowed)


def prepare_reference(plan: Plan, built: Built, run: Run) -> ReferenceKernel | None:
    """Make ready the kernel of a plan for a run that times; None if it was not built, or the device cannot."""
    from harness.build.pool import Artifact

    artifact = built.get(plan.reference.key) if plan.reference and run.timed else None
    if not isinstance(artifact, Artifact) or CRC not in artifact.compiled.facts:
        return None
    try:
        inputs = [_input(TURNS)]
        binaries = run.tunings.tuned("opencl", artifact.key, run.device, artifact.loadable, inputs, TIMEOUT_S)
    except (Failure, OSError):
        return None
    return ReferenceKernel(artifact, binaries)


def _samples(program: Program, turns: int, count: int, ends: float) -> list[float]:
    program.run([_input(turns)], timeout_s=ends - time.monotonic())
    return program.device_ms(count, timeout_s=ends - time.monotonic())


def _input(turns: int) -> Array:
    import numpy as np

    return np.array([turns], np.int32)


def kernel_of(artifact: Artifact) -> str:
    """Text that is the same for the same kernel and turns."""
    return f"{artifact.compiled.facts[CRC]:08x}-{TURNS}"


def compile_reference(request: Mapping[str, Any], out_dir: Path) -> Compiled:
    """Compile the reference kernel for the device of a `CompileRequest` on TVM's plain path, without any workaround."""
    from harness.build.compile import LIBRARY, Compiled
    from harness.build.link import exporter
    from harness.compiler.compat import opencl_source
    from harness.paths import PATHS
    from harness.paths.base import BuiltModule, DeviceLimits
    from harness.paths.lowered import add_host_entry

    started = time.perf_counter()
    path = PATHS["opencl"]
    target = path.target(DeviceLimits(), request["host_triple"])
    lowered = path.lower(_module(), target, ())
    executable = path.build(add_host_entry(lowered), target, ())
    built = BuiltModule(lowered, executable, opencl_source(executable))
    triple = request["host_triple"]
    executable.export_library(str(out_dir / LIBRARY), fcompile=exporter(triple) if triple else None)
    return Compiled(
        library=LIBRARY,
        vdevices=1,
        inputs=[("turns", [1], "int32")],
        outputs=1,
        quirks=[],
        facts={**asdict(path.facts(built)), CRC: zlib.crc32(built.source.encode())},
        compile_s=time.perf_counter() - started,
    )


def _module() -> Any:
    from tvm import relax

    from harness.compiler.compat import tensor_type, tir_function

    builder = relax.BlockBuilder()
    turns = relax.Var("turns", tensor_type((1,), "int32"))
    spin = builder.add_func(tir_function(_SOURCE), "spin")
    with builder.function("main", [turns]):
        with builder.dataflow():
            call = relax.call_tir(spin, [turns], tensor_type((THREADS,), "float32"))
            result = builder.emit_output(call)
        builder.emit_func_output(result)
    return builder.get()
