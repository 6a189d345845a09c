"""Suites of hand-made programs: what a run needs to have built, without a model or a compile worker."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from device_runner.device import Loadable, ThermalLimits
from device_runner.failures import Failure
from harness.base.case import Case, Precision
from harness.base.plan import Budget, Job, Plan
from harness.compile.artifacts.artifact import (
    INPUTS,
    OTHER_OUTPUTS,
    OUTPUTS,
    Answers,
    Artifact,
    Built,
    CompileResult,
    save_arrays,
)
from harness.compile.artifacts.pool import Builder

TIMEOUT_S = 15.0
"""Deadline of one call to the device. It has to reach for opening a session on a busy host."""


def plan(name: str, timeout_s: float = TIMEOUT_S) -> Plan:
    """A case of an opencl path; what it runs is what was built under its name."""
    return Plan(
        case=Case(name, "opencl", Precision.FLOAT32),
        compile=Job("compile", f"c-{name}", name, {}),
        oracle=Job("oracle", f"o-{name}", name, {}),
        quirks=(),
        relative_tolerance=1e-3,
        budget=Budget(seconds=0.1, samples=10, timeout_s=timeout_s),
        thermal_limits=ThermalLimits(wait_s=0),
    )


def built(name: str, program: Loadable, given: list[int], folder: Path) -> dict[str, Artifact | Answers]:
    """What `plan(name)` needs: a copy of the program that no device has seen, and the oracle's answer, which is 0."""
    folder = folder / name
    folder.mkdir(parents=True)
    library = folder / "lib.so"
    library.write_bytes(program.library.read_bytes() + str(folder).encode())  # what follows a library is not looked at
    save_arrays(folder / INPUTS, [np.array(given, np.int32)])
    for answers in (OUTPUTS, OTHER_OUTPUTS):
        save_arrays(folder / answers, [np.zeros(1, np.int32)])
    loadable = replace(program, library=library, sha256=hashlib.sha256(library.read_bytes()).hexdigest())
    compiled = CompileResult("lib.so", program.vdevices, [("x", [len(given)], "int32")], 1, [], {}, 0.0)
    artifact = Artifact(f"c-{name}", loadable, compiled, library.stat().st_size, reused=False)
    return {f"c-{name}": artifact, f"o-{name}": Answers(folder, reused=True)}


class Prebuilt(Builder):
    """Has everything built already."""

    def __init__(self, built: Built) -> None:
        self._built = built

    def build(self, jobs: Iterable[Job]) -> dict[str, Artifact | Answers | Failure]:
        return {job.key: self._built[job.key] for job in jobs}
