"""TVM's OpenCL runtime, which its wheels lack: found, built and loaded.

A process that runs artifacts calls `load(sidecar(cache_dir))` once, before it uses the device. Only shared libraries
are loaded, never the package `tvm`, so this works in a process that has not imported it.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device_runner import installed_tvm
from device_runner.failures import RigFailure, SetupMissing
from device_runner.runtimes import recipe
from device_runner.runtimes.opencl.driver import DEVICE_VARIABLE, chosen, packaged_driver
from device_runner.runtimes.probe import OpenCLDevice, answer_of, plain
from device_runner.runtimes.recipe import APT_HINT, Recipe
from device_runner.store import Store

__all__ = [
    "DEVICE_VARIABLE",
    "OpenCLStatus",
    "chosen",
    "is_built",
    "load",
    "needed",
    "opencl_status",
    "own",
    "packaged_driver",
    "sidecar",
]

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


RUNTIME = "libtvm_runtime.so"
STATUS_DEADLINE_S = 60
DEVICE_KIND = 4
"""TVM's number of the kind of device (dlpack.h, kDLOpenCL)."""
EXIST, DEVICE_NAME, DRIVER_VERSION = 0, 5, 12
"""TVM's numbers of attributes (device_api.h, DeviceAttrKind)."""


def needed() -> bool:
    """Whether the installed TVM has no OpenCL runtime of its own, be the sidecar loaded here or not.

    Loads TVM's runtime libraries, and tvm-ffi, which keeps the registry; never the package `tvm`.
    """
    return not _registered() or hasattr(ctypes.CDLL(None), "adreno_bench_opencl_held")


def own() -> Path:
    """The library of the installed TVM that has its OpenCL runtime, if it has one."""
    return installed_tvm.library("tvm", NAME, RUNTIME)


def _registered() -> bool:
    """Whether this process has an OpenCL runtime, once all of TVM's own is loaded."""
    import tvm_ffi

    _open(installed_tvm.library("tvm", RUNTIME))
    _open(own())
    return tvm_ffi.get_global_func("device_api.opencl", allow_missing=True) is not None


def load(library: Path) -> bool:
    """Load the sidecar into this process unless it has an OpenCL runtime already; says whether it did.

    Raises SetupMissing if the system's OpenCL loader is missing, RigFailure if the library does not load.
    """
    if _registered():
        return False
    _open(library)
    return True


@dataclass(frozen=True)
class OpenCLStatus:
    """What `adreno-bench doctor` says about OpenCL on this machine."""

    devices: tuple[OpenCLDevice, ...]
    """Every device of every driver, as the probe tells."""
    chosen: OpenCLDevice | None
    """The device that TVM would use."""
    problem: str = ""
    """Why there is none."""


def opencl_status(library: Path, prober: Path) -> OpenCLStatus:
    """Ask OpenCL for its platforms and devices in a process of its own, so that a broken driver cannot harm this one.

    `library` is TVM's OpenCL runtime, `prober` the probe. Never raises for what is wrong with OpenCL: that is the
    answer.
    """
    script = "import sys; from device_runner.runtimes.opencl import _tell_status; _tell_status(*sys.argv[1:])"
    try:
        done = subprocess.run(
            [sys.executable, "-c", script, str(library), str(prober)],
            env={**os.environ, **chosen()},
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
    if told["problem"]:
        return OpenCLStatus((), None, told["problem"])
    answer = answer_of(told["answer"].encode())
    if not answer.devices:
        return OpenCLStatus((), None, f"no OpenCL driver is installed ({answer.problem}): {APT_HINT}")
    return OpenCLStatus(answer.devices, answer.device_of(*map(plain, told["chosen"])))


def _tell_status(library: str, prober: str) -> None:
    """Body of `opencl_status`'s process: prints one line of JSON."""
    import tvm_ffi

    told: dict[str, Any] = {"answer": "", "chosen": ("", ""), "problem": ""}
    try:
        _open(installed_tvm.library("tvm", RUNTIME))
        _open(Path(library))
        told["answer"] = bytes(tvm_ffi.load_module(prober)["describe"]()).decode(errors="replace")
        attribute = tvm_ffi.get_global_func("runtime.GetDeviceAttr")
        if attribute(DEVICE_KIND, 0, EXIST):
            told["chosen"] = attribute(DEVICE_KIND, 0, DEVICE_NAME), attribute(DEVICE_KIND, 0, DRIVER_VERSION)
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
