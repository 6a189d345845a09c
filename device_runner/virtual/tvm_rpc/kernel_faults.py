"""Faults of OpenCL kernels, handed to our OpenCL runtime.

It reads its environment (src/fault.h) whenever a module with kernels is loaded, so what is set just before a library is
loaded concerns the kernels of that library, and a healthy library's kernels do not even look.
"""

from __future__ import annotations

import logging
import os
from fnmatch import fnmatchcase

from device_runner.virtual.faults import Faults, Kernels

SLOW = "ADRENO_BENCH_SLOW_KERNELS"
HANG = "ADRENO_BENCH_HANG_KERNELS"
RESETS = "ADRENO_BENCH_GPU_RESETS"
RESET_COUNT = f"{os.environ.get('ANDROID_ROOT', '/system')}/../sys/class/kgsl/kgsl-3d0/reset_count"

log = logging.getLogger("tvm_rpc")


def spoil_kernels(injected: Faults, library: str) -> None:
    """Let the kernels of the library of this file name, which is loaded next, be as the faults say."""
    slow = [slow for slow in injected.slow_kernels if concerns(slow, library)]
    hang = [hang for hang in (injected.hang_kernels,) if hang and concerns(hang, library)]
    _inject(SLOW, " ".join(f"{s.factor!r} {s.least_s!r} {s.kernel}" for s in slow), library)
    _inject(HANG, " ".join(h.kernel for h in hang), library)
    if any(mishap.what == "reset_gpu" for mishap in injected.mishaps):
        os.environ[RESETS] = RESET_COUNT


def concerns(kernels: Kernels, library: str) -> bool:
    """Whether a fault is about the library of this file name."""
    return fnmatchcase(library, kernels.library)


def _inject(variable: str, value: str, library: str) -> None:
    if value:
        log.warning("injected into %s: %s=%s", library, variable, value)
        os.environ[variable] = value
    else:
        os.environ.pop(variable, None)
