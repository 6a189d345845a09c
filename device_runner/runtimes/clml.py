"""A functional model of TVM's CLML runtime, for devices without OpenCL ML and for writing CLML modules on the host.

It answers to the names of TVM's own runtime, reads the same bytes and the same environment, and computes on the CPU
what TVM's runtime would ask of Qualcomm's library (docs/explanation/clml.md). Its results are emulated and its time
means nothing. Only shared libraries are loaded, never the package `tvm`.
"""

from __future__ import annotations

from device_runner.runtimes.recipe import STAND_INS, Sidecar

INFO = "adreno_bench.clml_info"
"""Function that reports its version and its work (docs/explanation/clml.md)."""
LOADER = "ffi.Module.load_from_bytes.clml"
CLML = Sidecar(
    "libadreno_bench_clml.so",
    "the functional model of CLML",
    "clml_runtime",
    LOADER,
    STAND_INS / "clml_runtime" / "src",
    # Contraction makes one instruction of a product and a sum, in the one place that is compiled for such machines.
    # That place is as fast at -O1, at which all of it compiles in two thirds of the time.
    flags=("-O1", "-ffp-contract=fast"),
)
library, is_built, needed, load = CLML.library, CLML.is_built, CLML.needed, CLML.load
