"""A functional model of TVM's CLML runtime, for devices without OpenCL ML and for writing CLML modules on the host.

It answers to the names of TVM's own runtime, reads the same bytes and the same environment, and computes on the CPU
what TVM's runtime would ask of Qualcomm's library (docs/explanation/clml.md). Its results are emulated and its time
means nothing. Only shared libraries are loaded, never the package `tvm`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

from device_runner import installed_tvm
from device_runner.failures import RigFailure
from device_runner.runtimes import recipe
from device_runner.runtimes.opencl import SHIM
from device_runner.runtimes.recipe import Recipe
from device_runner.store import Store

__all__ = ["is_built", "load", "library", "needed"]

LOADER = "ffi.Module.load_from_bytes.clml"
_FOLDER = "clml_runtime"
_RECIPE = Recipe(
    "libadreno_bench_clml.so",
    "the functional model of CLML",
    Path(__file__).parent / "src",
    # Contraction makes one instruction of a product and a sum, in the one place that is compiled for such machines.
    flags=("-O3", "-ffp-contract=fast"),
    missing_headers=SHIM,
)


def library(cache_dir: Path, *, extra_flags: Sequence[str] = ()) -> Path:
    """The model for the TVM of this interpreter, built at the first call; later calls only look it up.

    Processes that ask at the same time build it once. Raises SetupMissing without a C++ compiler, RigFailure if it
    does not compile.
    """
    return recipe.obtain(_RECIPE, Store(cache_dir, _FOLDER), extra_flags=extra_flags)


def is_built(cache_dir: Path) -> bool:
    """Whether `library` only has to look it up. Raises SetupMissing without a C++ compiler."""
    return recipe.is_built(_RECIPE, Store(cache_dir, _FOLDER))


def needed() -> bool:
    """Whether the installed TVM was built without CLML, be the model loaded here or not."""
    return not _registered(LOADER) or _registered("adreno_bench.clml_info")


def _registered(function: str) -> bool:
    import tvm_ffi

    # TVM's own CLML runtime would be in the second.
    for library in installed_tvm.libraries("tvm", "libtvm_runtime.so", "libtvm_runtime_extra.so"):
        _open(library)
    return tvm_ffi.get_global_func(function, allow_missing=True) is not None


def load(path: Path) -> bool:
    """Load the model into this process unless CLML modules can be loaded already; says whether it did.

    Raises RigFailure if the library does not load.
    """
    if _registered(LOADER):
        return False
    _open(path)
    return True


def _open(path: Path) -> None:
    try:
        ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise RigFailure(f"{path.name} does not load", evidence=str(error)) from error
