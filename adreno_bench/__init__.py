"""Measure networks on Apache TVM's paths to Adreno GPUs, from Python: see `docs/reference/api.md`.

`harness` and `device_runner` are internal, and change without notice; this package does not.
"""

from device_runner.device import DeviceEntry
from device_runner.failures import Failure
from harness.judge.report.exports import CaseExport
from harness.tools.python.interface import build, compare, compile, devices, load, run
from harness.tools.python.models import CheckedModel as OnnxModel
from harness.tools.python.modules import CompiledModule
from harness.tools.python.results import Library, Results, Verdicts

__all__ = [
    "CaseExport",
    "CompiledModule",
    "DeviceEntry",
    "Failure",
    "Library",
    "OnnxModel",
    "Results",
    "Verdicts",
    "build",
    "compare",
    "compile",
    "devices",
    "load",
    "run",
]
