"""The library with TVM's OpenCL runtime, which its wheels lack: what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from device_runner.runtimes import recipe
from device_runner.runtimes.recipe import Recipe
from device_runner.store import Store

NAME = "libtvm_runtime_opencl.so"
FOLDER = "opencl_runtime"
SOURCES = Path(__file__).parent / "src"
SHIM = SOURCES / "shim"
OPENCL = Recipe(NAME, "TVM's OpenCL runtime", SOURCES, links=("-lOpenCL",), missing_headers=SHIM)


def sidecar(cache_dir: Path, *, extra_flags: Sequence[str] = ()) -> Path:
    """The library for the TVM of this interpreter, built at the first call; later calls only look it up.

    Processes that ask at the same time build it once. Raises SetupMissing without compiler or OpenCL development
    files, RigFailure if it does not compile.
    """
    return recipe.obtain(OPENCL, Store(cache_dir, FOLDER), extra_flags=extra_flags)


def is_built(cache_dir: Path) -> bool:
    """Whether `sidecar` only has to look it up. Raises SetupMissing without a C++ compiler."""
    return recipe.is_built(OPENCL, Store(cache_dir, FOLDER))
