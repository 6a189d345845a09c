"""TVM's OpenCL runtime, which its wheels lack: found, built and loaded.

A process that runs artifacts calls `load(sidecar(cache_dir))` once, before it uses the device. Only shared libraries
are loaded, never the package `tvm`, so this works in a process that has not imported it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from device_runner import installed_tvm
from device_runner.runtimes.probe.answers import OpenCLDevice, answer_of, plain
from device_runner.runtimes.recipe import APT_HINT, STAND_INS, Sidecar, open_library

NAME = "libtvm_runtime_opencl.so"
OPENCL = Sidecar(
    NAME,
    "TVM's OpenCL runtime",
    "opencl_runtime",
    "device_api.opencl",
    STAND_INS / "opencl_runtime" / "src",
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
STATUS_DEADLINE_S = 60
DEVICE_KIND = 4
"""TVM's number of the kind of device (dlpack.h, kDLOpenCL)."""
EXIST, DEVICE_NAME, DRIVER_VERSION = 0, 5, 12
"""TVM's numbers of attributes (device_api.h, DeviceAttrKind)."""


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
    report = json.loads(done.stdout.splitlines()[-1])
    if report["problem"]:
        return OpenCLStatus((), None, report["problem"])
    answer = answer_of(report["answer"].encode())
    if not answer.devices:
        return OpenCLStatus((), None, f"no OpenCL driver is installed ({answer.problem}): {APT_HINT}")
    return OpenCLStatus(answer.devices, answer.device_of(*map(plain, report["chosen"])))


def _tell_status(library: str, prober: str) -> None:
    """Body of `opencl_status`'s process: prints one line of JSON."""
    import tvm_ffi

    report: dict[str, Any] = {"answer": "", "chosen": ("", ""), "problem": ""}
    try:
        open_library(installed_tvm.library("tvm", installed_tvm.RUNTIME[0]))
        open_library(Path(library))
        report["answer"] = bytes(tvm_ffi.load_module(prober)["describe"]()).decode(errors="replace")
        attribute = tvm_ffi.get_global_func("runtime.GetDeviceAttr")
        if attribute(DEVICE_KIND, 0, EXIST):
            report["chosen"] = attribute(DEVICE_KIND, 0, DEVICE_NAME), attribute(DEVICE_KIND, 0, DRIVER_VERSION)
    except Exception as error:
        report["problem"] = str(error)
    sys.stdout.write(json.dumps(report) + "\n")
