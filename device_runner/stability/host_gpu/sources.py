"""Which driver tells of a GPU: by the name that OpenCL gives the device."""

from __future__ import annotations

import re

from device_runner.stability.host_gpu import nvidia, sysfs
from device_runner.stability.host_gpu.reading import Source

_AMD = re.compile(r"gfx\d|Radeon")
_INTEL = re.compile(r"Intel.*(Graphics|Arc|Iris)|^(Arc|Iris)\b")


def source(gpu: str) -> Source | str:
    """What tells of this OpenCL device, or why nothing does; an empty text for what is no GPU that is known of."""
    if "NVIDIA" in gpu:
        return nvidia.source(gpu)
    if _AMD.search(gpu):
        return sysfs.source(sysfs.AMD)
    return sysfs.source(sysfs.INTEL) if _INTEL.search(gpu) else ""
