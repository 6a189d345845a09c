"""TVM's OpenCL runtime, which its wheels lack: found, built and loaded.

A process that runs artifacts calls `load(sidecar(cache_dir))` once, before it uses the device. Only shared libraries
are loaded, never the package `tvm`, so this works in a process that has not imported it.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device_runner.failures import RigFailure, SetupMissing
from device_runner.runtimes.opencl.library import NAME, is_built, sidecar
from device_runner.runtimes.recipe import APT_HINT, package_folder

__all__ = ["DEVICE_VARIABLE", "OpenCLStatus", "is_built", "load", "needed", "opencl_status", "sidecar"]

DEVICE_VARIABLE = "ADRENO_BENCH_OPENCL_DEVICE"
"""Environment variable that chooses the OpenCL device: `platform/device`, or one word found in either."""
STATUS_DEADLINE_S = 60


def needed() -> bool:
    """Whether the installed TVM has no OpenCL runtime of its own, be the sidecar loaded here or not.

    Loads TVM's runtime libraries, and tvm-ffi, which keeps the registry; never the package `tvm`.
    """
    return not _registered("device_api.opencl") or _registered("adreno_bench.opencl_info")


def _registered(function: str) -> bool:
    import tvm_ffi

    libraries = package_folder("tvm") / "lib"
    _open(libraries / "libtvm_runtime.so")
    if (libraries / NAME).exists():
        _open(libraries / NAME)
    return tvm_ffi.get_global_func(function, allow_missing=True) is not None


def load(library: Path) -> bool:
    """Load the sidecar into this process unless it has an OpenCL runtime already; says whether it did.

    Raises SetupMissing if the system's OpenCL loader is missing, RigFailure if the library does not load.
    """
    if _registered("device_api.opencl"):
        return False
    _open(library)
    return True


@dataclass(frozen=True)
class OpenCLStatus:
    """What `adreno-bench doctor` says about OpenCL on this machine."""

    devices: tuple[dict[str, Any], ...]
    """Every device of every driver, as `adreno_bench.opencl_devices` tells."""
    chosen: dict[str, Any] | None
    """The device that TVM would use."""
    problem: str = ""
    """Why there is none."""


def opencl_status(library: Path) -> OpenCLStatus:
    """Ask OpenCL for its platforms and devices in a process of its own, so that a broken driver cannot harm this one.

    Never raises for what is wrong with OpenCL: that is the answer.
    """
    script = "import sys; from device_runner.runtimes.opencl import _tell_status; _tell_status(sys.argv[1])"
    try:
        done = subprocess.run(
            [sys.executable, "-c", script, str(library)],
            capture_output=True,
            text=True,
            timeout=STATUS_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return OpenCLStatus((), None, f"an OpenCL driver did not answer within {STATUS_DEADLINE_S} s")
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return OpenCLStatus((), None, f"an OpenCL driver broke the process that asked it: {last}")
    told = json.loads(done.stdout.splitlines()[-1])
    return OpenCLStatus(tuple(told["devices"]), told["chosen"], told["problem"])


def _tell_status(library: str) -> None:
    """Body of `opencl_status`'s process: prints one line of JSON."""
    import tvm_ffi

    told: dict[str, Any] = {"devices": [], "chosen": None, "problem": ""}
    try:
        _open(Path(library))
        told["devices"] = json.loads(tvm_ffi.get_global_func("adreno_bench.opencl_devices")())
        if told["devices"]:
            told["chosen"] = json.loads(tvm_ffi.get_global_func("adreno_bench.opencl_info")())
        else:
            told["problem"] = f"no OpenCL driver is installed: {APT_HINT}"
    except Exception as error:
        told["problem"] = str(error)
    sys.stdout.write(json.dumps(told) + "\n")


def _open(library: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        if "libOpenCL" in str(error):
            raise SetupMissing("the system's OpenCL loader is missing", hint=APT_HINT, evidence=str(error)) from error
        raise RigFailure(f"{library.name} does not load", evidence=str(error)) from error
