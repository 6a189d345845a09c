"""What the installed TVM lacks on devices of this host: its OpenCL runtime, and CLML's functional model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from device_runner.runtimes import clml, opencl

COMPILING = "the first time, this compiles the runtimes that TVM's wheel lacks"
STEP = "step 1 of 3: the runtimes that TVM's wheel lacks"
"""What is shown while `libraries` works."""


def libraries(cache: Path, *, without_opencl: bool = False) -> tuple[Path | None, Path | None]:
    """Compile both at the first call, at the same time, and return them; None for what TVM has or nobody asks for.

    Raises what compiling them raises.
    """
    with ThreadPoolExecutor(2) as compilers:
        runtime = compilers.submit(opencl.sidecar, cache) if not without_opencl and opencl.needed() else None
        modelled = compilers.submit(clml.library, cache) if clml.needed() else None
        return runtime.result() if runtime else None, modelled.result() if modelled else None


def are_compiled(cache: Path) -> bool:
    """Return whether `libraries` has nothing to compile. Raises SetupMissing without a C++ compiler."""
    return (not opencl.needed() or opencl.is_built(cache)) and (not clml.needed() or clml.is_built(cache))
