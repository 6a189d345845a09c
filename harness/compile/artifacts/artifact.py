"""What a build makes: the files of an entry in the store, and what they say."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device_runner.device import Array, Loadable
from device_runner.failures import Failure

LIBRARY = "lib.so"
MANIFEST = "manifest.json"
FAILURE = "failure.json"
KERNELS = "kernels.cl"
"""All that the device compiles, kept beside the library for people, and for the difference between two builds."""
RESULT = "result.json"
"""How it went, as the worker says it; no part of a finished entry."""
STEP = "step"
"""What the compiler is doing, while it does (a pass of TVM, say); no part of a finished entry."""
INPUTS, OUTPUTS = "inputs.npz", "outputs.npz"
"""Files of the oracle."""
OTHER_INPUTS = "other-inputs.npz"
"""Other inputs of the same kind; not there if the oracle has no answer to them."""
OTHER_OUTPUTS = "other-outputs.npz"
"""The oracle's answers to other inputs."""
JUDGE = "judge.json"
"""Who gave the oracle's answers, with its version."""
VALUES, NAMES = "values.npz", "names.json"
"""Every tensor inside a network, and their names in the same order."""
BRANCHES = "branches.json"
"""Which branch of each If the oracle's answers went through; not there without an If."""
LEEWAY = "leeway.npz"
"""How far another right answer may be from the oracle's, number by number (`harness.compile.oracle.leeway`); not there
if that is not known."""
RANGE = "range.json"
"""How large the network's numbers become (`harness.compile.artifacts.values`)."""
LABELLED = "labelled.npz"
"""Labelled inputs, their classes, and those that the oracle gives them; only of a model that has labelled data."""
CRC = "source_crc32"
"""Among the facts of a reference kernel: of its source, by which sessions know whether they timed the same one."""


@dataclass(frozen=True)
class CompileResult:
    """Result of a request, as plain JSON values."""

    library: str
    """File name in the output directory."""
    vdevices: int
    inputs: list[tuple[str, list[int], str]]
    """Name, shape and number format, in the order that the library's entries take them."""
    outputs: int
    quirks: list[str]
    facts: dict[str, int]
    compile_s: float
    offload: dict[str, Any] | None = None
    """What went to CLML and what stayed, on the path that asks
    (`harness.compile.paths.clml.offload_report.OffloadReport`)."""
    launches: dict[str, dict[str, Any]] | None = None
    """By kernel (`paths.lowered_module.PlannedLaunch`); None of a library that others compiled."""
    work: list[dict[str, Any]] | None = None
    """By compiled function (`harness.compile.compiler.tir.OperatorWork`); None of any library of a language model."""
    effective_quirks: list[str] | None = None
    """Those of `quirks` whose workaround changed something; None where nobody watched them."""
    compile_cpu_s: float | None = None
    """Seconds of processors that it took, which a busy host does not change; None where it was not taken."""
    long_names: dict[str, str] | None = None
    """Names of compiled functions that were shortened, by the short one; None likewise."""
    schedules: dict[str, Any] | None = None
    """For a build with tuned schedules: the result of each task (`harness.compile.schedules.apply.ScheduleApplier`)."""


@dataclass(frozen=True)
class Artifact:
    """One compiled case in the store."""

    key: str
    loadable: Loadable
    compiled: CompileResult
    size_bytes: int
    reused: bool
    """Whether it was there before this run."""

    @property
    def source(self) -> str:
        """All that the device compiles; empty if that is nothing."""
        file = self.loadable.library.with_name(KERNELS)
        return file.read_text(encoding="utf-8") if file.exists() else ""


@dataclass(frozen=True)
class Answers:
    """The oracle's inputs and outputs of one model, as files in the store."""

    folder: Path
    reused: bool
    unchecked: str = ""
    """Why there is no answer from outside TVM, where LLVM's took its place."""

    @property
    def judge(self) -> str:
        """Who gave them; empty of LLVM's values inside a network."""
        file = self.folder / JUDGE
        return str(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else ""

    @property
    def branches(self) -> tuple[str, ...]:
        """Which branch of each If they went through, as `then of NAME`; empty if that was not noted."""
        file = self.folder / BRANCHES
        return tuple(map(str, json.loads(file.read_text(encoding="utf-8")))) if file.exists() else ()


Built = Mapping[str, Artifact | Answers | Failure]
"""Results of jobs, by key."""


def load_arrays(file: Path) -> list[Array]:
    """Arrays in the order saved. Never unpickles."""
    import numpy as np

    with np.load(file, allow_pickle=False) as arrays:
        return [arrays[name] for name in sorted(arrays.files)]


def load_values(folder: Path) -> dict[str, Array]:
    """Return every tensor inside a network, by its name, as `save_values` keeps them."""
    names = json.loads((folder / NAMES).read_text(encoding="utf-8"))
    return dict(zip(names, load_arrays(folder / VALUES), strict=True))


def save_values(folder: Path, values: Mapping[str, Array]) -> None:
    """Keep tensors by their names."""
    save_arrays(folder / VALUES, list(values.values()))
    (folder / NAMES).write_text(json.dumps(list(values)), encoding="utf-8")


def save_arrays(file: Path, arrays: list[Array]) -> None:
    """Keep arrays in their order."""
    import numpy as np

    savez: Any = np.savez  # its stub takes no unpacked mapping
    savez(file, **{f"{index:03d}": array for index, array in enumerate(arrays)})
