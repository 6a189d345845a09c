"""What else a bundle has for a machine without Python: each turn as lines that a program of C reads, and a script.

run.sh          `phone.sh`: runs every turn, and writes the results folder
runner          runs one turn (`device_runner.runtimes.runner`)
look.sh         prints what a phone says of its heat and pace
turns           a build and a case in each line
files.sha256    of every other file but the manifest
cases/          a file for each case of each build, and one for the device; inputs and answers as plain bytes
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from device_runner.device import Loadable
from device_runner.runtimes import runner
from device_runner.stability.sources import LOOK_SCRIPT
from harness.build.artifact import INPUTS, OUTPUTS
from harness.build.oracle import load_arrays
from harness.bundle.manifest import Build, PackedCase, Turn
from harness.cases.plan import Budget
from harness.probes import batches, latency
from harness.run.correctness import tolerance_of

if TYPE_CHECKING:
    from device_runner.device import Array

SCRIPT = Path(__file__).parent / "phone.sh"
SUMS = "files.sha256"
PLAIN = "plain"
"""Folder beside a case's answers with the same arrays as plain bytes."""

RULES = {
    "quick_samples": latency.QUICK_SAMPLES,
    "steady_s": latency.STEADY_S,
    "sampled_s": latency.SAMPLED_S,
    "fewest": latency.FEWEST_SAMPLES,
    "fewest_device": latency.FEWEST_DEVICE_SAMPLES,
    "agree_within": latency.AGREE_WITHIN,
    "warm_up_share": latency.WARM_UP_SHARE,
    "device_share": latency.DEVICE_SHARE,
    "warm_up_kept": latency.WARM_UP_KEPT,
    "most_inferences": latency.MOST_INFERENCES,
    "shortest_ms": latency.SHORTEST_MS,
    "call_share": latency.CALL_SHARE,
    "batch_share": batches.SHARE,
    "batch_repeat": batches.REPEAT,
    "smallest_batch": batches.SMALLEST,
    "largest_batch": batches.LARGEST,
}
"""The numbers of the timing protocol, which the runner is told with every turn."""
DEVICE_TIMEOUT_S = 120.0
"""For who the device is, and for what it does at best."""


def lay_out(folder: Path, builds: dict[str, Build], turns: Sequence[Turn], cache: Path, abi: str) -> None:
    """Add to a bundle's folder what a machine without Python needs. Raises SetupMissing, RigFailure."""
    shutil.copyfile(runner.program(cache, abi), folder / "runner")
    shutil.copyfile(SCRIPT, folder / "run.sh")
    (folder / "look.sh").write_text(LOOK_SCRIPT, encoding="utf-8")
    (folder / "turns").write_text("".join(f"{turn.build} {turn.case}\n" for turn in turns), encoding="utf-8")
    for name, build in builds.items():
        cases = folder / "cases" / name
        cases.mkdir(parents=True)
        _write(cases / "device.txt", [*_runtime(build), f"timeout_s {DEVICE_TIMEOUT_S}"])
        for one in build.cases:
            if one.artifact.library and not one.refused:
                _write(cases / f"{one.case}.txt", [*_runtime(build), *_case(folder, one)])
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(folder)}" for file in files)
    _write(folder / SUMS, sums)


def _write(file: Path, lines: Sequence[str] | Iterator[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _runtime(build: Build) -> Iterator[str]:
    yield from (f"load {library}" for library in build.libraries)
    if build.probe:
        yield f"probe {build.probe}"


def _case(folder: Path, packed: PackedCase) -> Iterator[str]:
    yield f"library {packed.artifact.library}"
    yield f"entry {Loadable.entry}"
    yield f"host_entry {Loadable.host_entry}"
    yield f"vdevices {packed.artifact.compiled['vdevices']}"
    yield from protocol_of(Budget(**packed.budget))
    answers = folder / "answers" / packed.answers
    for index, array in enumerate(load_arrays(answers / INPUTS)):
        yield f"input {_described(array)} {_plain(folder, answers, f'input{index}', array)}"
    for index, array in enumerate(load_arrays(answers / OUTPUTS)):
        tolerance = tolerance_of(array, packed.relative_tolerance)
        yield f"answer {_described(array)} {tolerance:.17g} {_plain(folder, answers, f'answer{index}', array)}"


def protocol_of(budget: Budget) -> Iterator[str]:
    """The lines that tell the runner how to time a case."""
    numbers = {field.name: getattr(budget, field.name) for field in fields(budget) if field.name != "sustain_s"}
    yield from (f"{name} {value:.17g}" for name, value in {**numbers, **RULES}.items())


def _described(array: Array) -> str:
    return " ".join(map(str, (array.dtype.name, array.ndim, *array.shape)))


def _plain(folder: Path, answers: Path, name: str, array: Array) -> str:
    file = answers / PLAIN / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(array.tobytes())
    return file.relative_to(folder).as_posix()
