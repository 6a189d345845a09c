"""Which OpenCL driver and device of this host are used, as environment variables for whoever opens them.

Debian's PoCL has no `cl_khr_fp16`. Intel's OpenCL for processors has it, and a wheel brings it; but the wheel's `.icd`
file names a folder of whoever packed it, so the library itself is named to the loader.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

DEVICE_VARIABLE = "ADRENO_BENCH_OPENCL_DEVICE"
"""Environment variable that chooses the OpenCL device: `platform/device`, or one word found in either."""
DRIVER_VARIABLE = "OCL_ICD_VENDORS"
"""The ICD loader's own: a folder of `.icd` files, one such file, or a driver's library (ocl-icd's manual)."""
PACKAGE = "intel-opencl-rt"
LIBRARY = "libintelocl.so"


def packaged_driver() -> Path | None:
    """The driver's library of the optional extra `fp16`; None where it is not installed."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())).resolve() for file in files if file.name == LIBRARY), None)


def chosen(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that choose driver and device, as the user set them.

    Where the device that is asked for is Intel's, and no driver is named, the packaged one is.
    """
    names = (DEVICE_VARIABLE, DRIVER_VARIABLE)
    told = {name: value for name in names if (value := environment.get(name))}
    wants_it = "intel" in told.get(DEVICE_VARIABLE, "").lower()
    if wants_it and DRIVER_VARIABLE not in told and (library := packaged_driver()):
        told[DRIVER_VARIABLE] = str(library)
    return told
