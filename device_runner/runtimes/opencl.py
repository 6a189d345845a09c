"""TVM's OpenCL runtime, which its wheels lack: found, built and loaded.

A process that runs artifacts calls `load(sidecar(cache_dir))` once, before it uses the device. Only shared libraries
are loaded, never the package `tvm`, so this works in a process that has not imported it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

from device_runner import installed_tvm
from device_runner.runtimes.recipe import STAND_INS, Sidecar

NAME = "libtvm_runtime_opencl.so"
OPENCL = Sidecar(
    NAME,
    "TVM's OpenCL runtime",
    "opencl_runtime",
    "device_api.opencl",
    STAND_INS / "opencl_runtime" / "src",
    flags=("-O1",),  # a launch costs the same as at -O2 (`benchmarks.launch_cost`), and it compiles in 0.6 of the time
    links=("-lOpenCL",),
)
sidecar, is_built, needed, load = OPENCL.library, OPENCL.is_built, OPENCL.needed, OPENCL.load

DEVICE_VARIABLE = "ADRENO_BENCH_OPENCL_DEVICE"
"""Environment variable that chooses the OpenCL device: `platform/device`, or one word found in either."""
DRIVER_VARIABLE = "OCL_ICD_VENDORS"
"""The ICD loader's own: a folder of `.icd` files, one such file, or a driver's library (ocl-icd's manual)."""
_INTEL_PACKAGE, _INTEL_LIBRARY = "intel-opencl-rt", "libintelocl.so"
"""Intel's OpenCL for processors has `cl_khr_fp16`, and Debian's PoCL has not. The wheel's `.icd` file names a folder
that exists on the packer's machine alone, so the loader gets the library itself."""


def own() -> Path:
    """Return the library of the installed TVM that has its OpenCL runtime, if it has one."""
    return installed_tvm.library("tvm", NAME, installed_tvm.RUNTIME[0])


def packaged_driver() -> Path | None:
    """Return the driver's library of the optional extra `fp16`; None where it is not installed."""
    try:
        files = metadata.files(_INTEL_PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())).resolve() for file in files if file.name == _INTEL_LIBRARY), None)


def chosen(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables that choose driver and device, as the user set them.

    Where the device that is asked for is Intel's, and no driver is named, the packaged one is.
    """
    names = (DEVICE_VARIABLE, DRIVER_VARIABLE)
    variables = {name: value for name in names if (value := environment.get(name))}
    wants_it = "intel" in variables.get(DEVICE_VARIABLE, "").lower()
    if wants_it and DRIVER_VARIABLE not in variables and (library := packaged_driver()):
        variables[DRIVER_VARIABLE] = str(library)
    return variables
