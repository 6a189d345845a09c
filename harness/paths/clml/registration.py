"""Makes TVM's own CLML passes work with a TVM that was built without CLML, as the wheels are."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from device_runner.runtimes import clml as clml_runtime
from device_runner.store import cache_root
from harness.paths.clml.codegen import generate

CODEGEN_ONLY_VERSION = 3
"""What a TVM answers for CLML's version that was built to generate code only (clml/codegen.cc)."""


def register(cache: Path | None = None) -> None:
    """After this, `tvm.relax.backend.adreno.clml.OpenCLMLOffLoad()` works in this process. May be called again.

    What the installed TVM has is used. What it lacks is added under TVM's own names: the code generator, and modules of
    kind `clml` from the library that `device_runner.runtimes.clml` builds once into `cache` (default: this project's
    cache folder). Raises `SetupMissing` if there is no C++ compiler for it, `RigFailure` if it does not compile.
    """
    import tvm_ffi

    import_module("tvm.relax.backend.adreno.clml")
    if tvm_ffi.get_global_func("relax.ext.openclml", allow_missing=True) is not None:
        return
    if clml_runtime.needed():
        clml_runtime.load(clml_runtime.library(cache or cache_root()))
    tvm_ffi.register_global_func("relax.ext.openclml", generate)
    tvm_ffi.register_global_func("relax.get_openclml_version", lambda: CODEGEN_ONLY_VERSION)
    tvm_ffi.register_global_func("relax.is_openclml_runtime_enabled", lambda: False)
