"""The layer between the OpenCL loader and the host's driver that makes the virtual phone's GPU no more than an Adreno.

The loader takes it from the environment (`OPENCL_LAYERS`), so it holds for TVM's own runtime, for ours and for the
probe alike. It is compiled once and needs nothing but C's library: the loader opens it before anything else is there.
"""

from __future__ import annotations

from pathlib import Path

from device_runner.runtimes.c_code import CCode

VARIABLE = "OPENCL_LAYERS"
"""The loader's own: libraries, separated by `:` (ocl-icd's manual)."""
LAYER = CCode(
    "phone_gpu.so",  # which does not count among the files that OpenCL consists of (the probe's `add_file`)
    "the virtual GPU's limits",
    "opencl_layer",
    (Path(__file__).parent / "src",),
    ("-fPIC",),
)
layer = LAYER.file
