"""What a build makes: the files of an entry in the store, and what they say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device_runner.device import Loadable
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
"""Of the oracle."""
OTHER_OUTPUTS = "other-outputs.npz"
"""The oracle's answers to other inputs."""
RANGE = "range.json"
"""How large the network's numbers become (`harness.build.value_range`)."""
LABELLED = "labelled.npz"
"""Labelled inputs, their classes, and those that the oracle gives them; only of a model that has labelled data."""


@dataclass(frozen=True)
class Compiled:
    """What came of a request, as plain JSON values."""

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
    """What went to CLML and what stayed, on the path that asks (`harness.paths.clml.offload.OffloadReport`)."""
    launches: dict[str, dict[str, Any]] | None = None
    """By kernel (`harness.paths.lowered.Launch`); None in what was built before this was noted."""
    work: list[dict[str, Any]] | None = None
    """By compiled function (`harness.compiler.work.Work`); None likewise."""
    schedules: dict[str, Any] | None = None
    """Of a build with tuned schedules, what became of its tasks (`harness.schedules.apply.Applied`)."""


@dataclass(frozen=True)
class Artifact:
    """One compiled case in the store."""

    key: str
    loadable: Loadable
    compiled: Compiled
    size_bytes: int
    reused: bool
    """Whether it was there before this run."""


@dataclass(frozen=True)
class Answers:
    """The oracle's inputs and outputs of one model, as files in the store."""

    folder: Path
    reused: bool


Built = Mapping[str, Artifact | Answers | Failure]
"""What jobs came to, by key."""
