"""What runs a bundle there: a script, a program of C, and each turn as lines that the program reads.

run.sh          runs every turn, and writes the results folder
runner          runs one turn (`harness.tools.bundle.runner`)
look.sh         prints what the device says of its heat and pace
link.sh         leads TVM's runtime to OpenCL where Linux has it under another name
turns           a build and a case in each line
files.sha256    of every other file but the manifest
cases/          a file for each case of each build, and one for the device; inputs and answers as plain bytes
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path, PurePosixPath

from device_runner.device import Array, Loadable
from device_runner.names import load
from device_runner.registry import CARDS_SCRIPT
from device_runner.runtimes.phone.install import LINK_SCRIPT, SEARCHED
from device_runner.stability.sources import LOOK_SCRIPT
from device_runner.store import sha256_of
from device_runner.transport.batch import MARK
from harness.base.case import Case
from harness.base.plan import Budget
from harness.compile.artifacts.artifact import (
    CRC,
    INPUTS,
    LABELLED,
    LEEWAY,
    OTHER_INPUTS,
    OUTPUTS,
    CompileResult,
    load_arrays,
)
from harness.compile.oracle.leeway import Leeway, load_leeway
from harness.measure.correctness import relative_tolerances, tolerance_of
from harness.measure.probes import batches, latency, reference
from harness.measure.work import limits
from harness.tools.bundle import runner
from harness.tools.bundle.manifest import BundleBuild, BundleTurn, PackedCase, PackedLibrary

SCRIPT = Path(__file__).parent / "run.sh"
SUMS = "files.sha256"
ANDROID = "arm64-v8a"
PRELOAD = "preload"
"""Libraries, separated by `:`, that Android's loader must know from the start (bionic, linker_namespaces.cpp)."""
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
    "reference_timeout_s": reference.TIMEOUT_S,
    "reference_seconds": Budget().seconds,
    "first_turns": reference.TURNS,
    "growth": reference.GROWTH,
    "grown": reference.GROWN,
    "long_ms": reference.LONG_MS,
    "ticks": reference.TICKS,
    "too_long_ms": reference.TOO_LONG_MS,
}
"""The numbers of the protocol, by their names in a turn's file: the runner has no others."""
DEVICE_TIMEOUT_S = 120.0
"""Timeout for identifying the device and for measuring its peak rates."""


def lay_out(folder: Path, builds: dict[str, BundleBuild], turns: Sequence[BundleTurn], cache: Path, abi: str) -> None:
    """Add to a bundle's folder what runs it. Raises SetupMissing, RigFailure."""
    shutil.copyfile(runner.program(cache, abi), folder / "runner")
    shutil.copyfile(SCRIPT, folder / "run.sh")
    cards = "" if abi == ANDROID else f'echo "{MARK} cards"{load(CARDS_SCRIPT)}echo "\n{MARK} 0"\n'
    (folder / "look.sh").write_text(LOOK_SCRIPT + cards, encoding="utf-8")
    if abi != ANDROID:
        (folder / "link.sh").write_text(f'set -- "$1" {" ".join(SEARCHED)}\n{LINK_SCRIPT}', encoding="utf-8")
    (folder / "turns").write_text("".join(f"{turn.build} {turn.case}\n" for turn in turns), encoding="utf-8")
    for name, build in builds.items():
        cases = folder / "cases" / name
        cases.mkdir(parents=True)
        if abi == ANDROID:
            _write(cases / PRELOAD, [":".join(PurePosixPath(library).name for library in build.libraries)])
        _write(cases / "device.txt", [*_runtime(build), f"timeout_s {DEVICE_TIMEOUT_S}"])
        for case in build.cases:
            if case.artifact.library and not case.refused:
                _write(cases / f"{case.case}.txt", [*_runtime(build), *_case(folder, case)])
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = (f"{sha256_of(file)}  {file.relative_to(folder)}" for file in files)
    _write(folder / SUMS, sums)


def _write(file: Path, lines: Sequence[str] | Iterator[str]) -> None:
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _runtime(build: BundleBuild) -> Iterator[str]:
    yield from (f"load {library}" for library in build.libraries)
    if build.loader:
        yield f"loader {build.loader}"
    if build.probe:
        yield f"probe {build.probe}"
    if build.peaks:
        yield f"peaks {build.peaks}"


def _case(folder: Path, packed: PackedCase) -> Iterator[str]:
    yield f"library {packed.artifact.library}"
    yield f"entry {Loadable.entry}"
    yield f"host_entry {Loadable.host_entry}"
    yield f"vdevices {packed.artifact.compiled['vdevices']}"
    yield from protocol_of(Budget(**packed.budget))
    yield from _tuning(packed)
    yield from _reference(packed.reference)
    answers = folder / "answers" / packed.answers
    inputs = load_arrays(answers / INPUTS)
    for index, array in enumerate(inputs):
        yield f"input {_shape_text(array)} {_plain(folder, answers, f'input{index}', array)}"
    others = load_arrays(answers / OTHER_INPUTS) if (answers / OTHER_INPUTS).exists() else []
    for index, array in enumerate(others):
        yield f"other {_shape_text(array)} {_plain(folder, answers, f'other{index}', array)}"
    compiled, precision = CompileResult(**packed.artifact.compiled), Case.parse(packed.case).precision
    least, factor, precision = limits(compiled, precision, packed.relative_tolerance, packed.rounding_factor)
    outputs = load_arrays(answers / OUTPUTS)
    leeways = [output.leeway(factor, precision) for output in load_leeway(answers / LEEWAY)]
    leeways = leeways or [Leeway()] * len(outputs)
    relative = relative_tolerances(len(outputs), least, [leeway.rounding for leeway in leeways])
    for index, array in enumerate(outputs):
        tolerance = tolerance_of(array, relative[index]) + leeways[index].most(array)
        yield f"answer {_shape_text(array)} {tolerance:.17g} {_plain(folder, answers, f'answer{index}', array)}"
    if (answers / LABELLED).exists():
        rows, batch = load_arrays(answers / LABELLED)[0], len(inputs[0])
        file = _plain(folder, answers, "labelled", rows)
        yield f"labelled {len(rows) // batch} {_shape_text(rows[:batch])} {file}"


def _tuning(packed: PackedCase) -> Iterator[str]:
    """Yield path where a tuned case keeps its tuning cache."""
    case = Case.parse(packed.case)
    if case.tuning.cached:
        kind = "tuning_cache" if case.path == "clml" else "binaries"
        yield f"{kind} {kind}-{packed.artifact.key}"


def _reference(packed: PackedLibrary | None) -> Iterator[str]:
    """Yield the reference kernel, and where its binaries and the number of its turns are kept."""
    if packed is None or CRC not in packed.compiled["facts"]:
        return
    yield f"reference {packed.library}"
    yield f"reference_binaries reference-{packed.key}"
    yield f"reference_turns turns-{packed.compiled['facts'][CRC]:08x}"
    yield from (f"try {share:.17g} {reference.SAMPLES}" for share in reference.TRIED)
    yield from (f"play {share:.17g} {samples}" for share, samples in reference.ORDER)


def protocol_of(budget: Budget) -> Iterator[str]:
    """Yield the lines that tell the runner how to time a case."""
    numbers = {field.name: getattr(budget, field.name) for field in fields(budget) if field.name != "sustain_s"}
    yield from (f"{name} {value:.17g}" for name, value in {**numbers, **RULES}.items())


def _shape_text(array: Array) -> str:
    return " ".join(map(str, (array.dtype.name, array.ndim, *array.shape)))


def _plain(folder: Path, answers: Path, name: str, array: Array) -> str:
    file = answers / PLAIN / name
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(array.tobytes())
    return file.relative_to(folder).as_posix()
