"""Which OpenCL devices this host has, asked in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device_runner import installed_tvm
from device_runner.runtimes.opencl import chosen
from device_runner.runtimes.probe.answers import OpenCLDevice, answer_of, plain
from device_runner.runtimes.recipe import APT_HINT, open_library
from harness.base.process import complaint_of, run_to_end

STATUS_DEADLINE_S = 60
DEVICE_KIND = 4
"""TVM's number of the kind of device (dlpack.h, kDLOpenCL)."""
EXIST, DEVICE_NAME, DRIVER_VERSION = 0, 5, 12
"""TVM's numbers of attributes (device_api.h, DeviceAttrKind)."""


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
    script = "import sys; from harness.tools.doctor.opencl_status import tell_status; tell_status(*sys.argv[1:])"
    try:
        command = [sys.executable, "-c", script, str(library), str(prober)]
        done = run_to_end(command, STATUS_DEADLINE_S, env={**os.environ, **chosen()})
    except subprocess.TimeoutExpired:
        return OpenCLStatus((), None, f"an OpenCL driver did not answer within {STATUS_DEADLINE_S} s")
    if done.returncode != 0:
        return OpenCLStatus((), None, f"an OpenCL driver broke the process that asked it: {complaint_of(done)}")
    report = json.loads(done.stdout.splitlines()[-1])
    if report["problem"]:
        return OpenCLStatus((), None, report["problem"])
    answer = answer_of(report["answer"].encode())
    if not answer.devices:
        return OpenCLStatus((), None, f"no OpenCL driver is installed ({answer.problem}): {APT_HINT}")
    return OpenCLStatus(answer.devices, answer.device_of(*map(plain, report["chosen"])))


def tell_status(library: str, prober: str) -> None:
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
