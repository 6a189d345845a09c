"""A bundle, packed of libraries that are there, and run by a phone's shell and tools."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from waiting import LONG_S

from device_runner.device import Identity, Loadable
from harness.base.case import Case, Precision, Tuning
from harness.base.plan import Budget, Job, Plan
from harness.base.request import WORKED_AROUND, QuirkPolicy
from harness.compile.artifacts.artifact import (
    INPUTS,
    LABELLED,
    OTHER_INPUTS,
    OTHER_OUTPUTS,
    OUTPUTS,
    Answers,
    Artifact,
    CompileResult,
    save_arrays,
)
from harness.tools.bundle.archive import unpack
from harness.tools.bundle.pack import KINDS, MachineKind, PackedBundle, pack

FOR_THIS_HOST = KINDS[f"linux-{platform.machine()}"]
SHORT = Budget(seconds=0.5, timeout_s=LONG_S)


@dataclass(frozen=True)
class Made:
    """One case: its library, what goes in, and what should come out."""

    name: str
    loadable: Loadable
    given: np.ndarray[Any, Any]
    answer: np.ndarray[Any, Any]
    budget: Budget = SHORT
    path: str = "opencl"
    tuning: Tuning = Tuning.UNTUNED
    reference: Artifact | None = None
    labelled: Sequence[np.ndarray[Any, Any]] = ()
    """Inputs, labels, and the oracle's classes."""
    other: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None = None
    """Another input, and the answer that it should have."""

    @property
    def keys(self) -> tuple[str, str]:
        """Of its artifact and its answers."""
        return f"c-{self.name}-{self.path}", f"o-{self.name}-{self.path}"

    @property
    def plan(self) -> Plan:
        case = Case(self.name, self.path, Precision.FLOAT32, self.tuning)
        jobs = Job("compile", self.keys[0], "", {}), Job("oracle", self.keys[1], "", {})
        reference = Job("reference", self.reference.key, "", {}) if self.reference else None
        return Plan(case, *jobs, (), 1e-3, self.budget, reference=reference)

    def built(self, folder: Path) -> dict[str, Artifact | Answers]:
        folder.mkdir(exist_ok=True)
        for name, arrays in ((INPUTS, [self.given]), (OUTPUTS, [self.answer]), (OTHER_OUTPUTS, [self.answer + 1])):
            save_arrays(folder / name, arrays)
        if self.other:
            save_arrays(folder / OTHER_INPUTS, [self.other[0]])
            save_arrays(folder / OTHER_OUTPUTS, [self.other[1]])
        if self.labelled:
            save_arrays(folder / LABELLED, list(self.labelled))
        vdevices = self.loadable.vdevices if self.loadable.device == "opencl" else 0
        compiled = CompileResult("lib.so", vdevices, [], 1, [], {}, 1.0)
        artifact = Artifact(self.keys[0], self.loadable, compiled, 1, reused=False)
        reference = {self.reference.key: self.reference} if self.reference else {}
        return {self.keys[0]: artifact, self.keys[1]: Answers(folder, reused=False), **reference}


@dataclass(frozen=True)
class Asked:
    """What `pack` needs of a request."""

    cache: Path
    made: Sequence[Made]
    quirks: QuirkPolicy = WORKED_AROUND

    def plans(self, identity: Identity) -> list[Plan]:
        return [one.plan for one in self.made]


@dataclass(frozen=True)
class Place:
    """Where bundles are packed, and run by a phone's shell."""

    root: Path
    bin: Path
    kind: MachineKind = FOR_THIS_HOST

    def pack(self, cache: Path, *made: Made, **options: Any) -> PackedBundle:
        things = {key: thing for one in made for key, thing in one.built(self.root / one.name).items()}
        asked: Any = Asked(cache, made)
        packed = pack(asked, self.kind, lambda plans: things, self.root / "bundle.tar.gz", **options)
        unpack(packed.file, self.there)
        return packed

    @property
    def there(self) -> Path:
        return self.root / "there"

    @property
    def results(self) -> Path:
        return self.root / "results"

    def start(self) -> subprocess.Popen[str]:
        passed = ("OCL_", "OPENCL_", "POCL_", "LD_PRELOAD")
        keep = {name: value for name, value in os.environ.items() if name.startswith(passed)}
        # Without HOME it would be the same folder for all users of this host, and only the first may use it.
        keep["POCL_CACHE_DIR"] = str(self.root / "kernels")
        command = [str(self.bin / "sh"), str(self.there / "run.sh"), str(self.results)]
        return subprocess.Popen(command, env={**keep, "PATH": str(self.bin)}, stderr=subprocess.PIPE, text=True)

    def run(self) -> tuple[int, str]:
        with self.start() as process:
            return process.wait(LONG_S), process.stderr.read() if process.stderr else ""
