"""The operator cases that there are: each a small network with its inputs and the outputs that it must have.

Generating them takes half a minute, so they are kept: one folder for each set, under a hash of all that decides it.

    <cache>/operators/<key>/index.json               what they are
    <cache>/operators/<key>/<name>/model.onnx, prepared.onnx, inputs.npz, outputs.npz
"""

from __future__ import annotations

import dataclasses
import fnmatch
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from device_runner.device import Array
from device_runner.failures import RigFailure
from device_runner.names import suggestion
from device_runner.store import Store, key_of, sha256_of
from harness.base.failures import ModelError, UsageError
from harness.compile.artifacts.keys import ROOT, digest
from harness.compile.models.onnx_read import parse
from harness.tools.ops.networks import OperatorNetwork, half_sweep, node_tests, sweep

KIND = "operators"
MODEL, INPUTS, OUTPUTS, INDEX = "model.onnx", "inputs.npz", "outputs.npz", "index.json"
PREPARED = "prepared.onnx"
"""The network as `run` compiles it (`harness.compile.models.preparation`)."""
LOCK_WAIT_S = 300.0
LIBRARIES = ("onnx", "numpy")
"""Whose release decides what is generated."""

Source = Callable[[dict[str, int]], "Iterator[OperatorNetwork]"]
"""Generates a set, and counts by reason what it leaves out."""
SETS: dict[str, Source] = {"sweep": sweep, "sweep-float16": half_sweep, "onnx": node_tests}


@dataclass(frozen=True)
class OperatorCase:
    """One operator network, in files."""

    name: str
    operator: str
    """ONNX's name of the operator that it is about."""
    dtype: str
    """Number format of its first input."""
    set: str
    model_sha256: str
    prepared_sha256: str
    """Hash of the network as `run` compiles it; the same if there is nothing to prepare."""
    data_sha256: str
    """Hash of the inputs and outputs."""

    def matches(self, pattern: str) -> bool:
        """Return whether the name or the operator matches a shell glob, whatever its letter case."""
        return any(fnmatch.fnmatch(text.lower(), pattern.lower()) for text in (self.name, self.operator))


@dataclass(frozen=True)
class Catalogue:
    """One set of cases."""

    folder: Path
    cases: tuple[OperatorCase, ...]
    left_out: dict[str, int]
    """How many tests of the set were not taken, by reason."""

    def file(self, case: OperatorCase, name: str) -> Path:
        """One of a case's files."""
        return self.folder / case.name / name

    def arrays(self, case: OperatorCase, name: str) -> dict[str, Array]:
        """Return inputs or outputs of a case by name."""
        with np.load(self.file(case, name), allow_pickle=False) as arrays:
            return {key: arrays[key] for key in arrays.files}


def catalogue(name: str, cache: Path) -> Catalogue:
    """Return a set by its name, generated if it is not in the cache. Raises UsageError for an unknown name."""
    if name not in SETS:
        raise UsageError(f"there is no set {name!r}", hint=suggestion(name, SETS))
    folder = Store(cache, KIND, sums=False).obtain(_key(name), lambda scratch: _generate(name, scratch), LOCK_WAIT_S)
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        return Catalogue(folder, tuple(OperatorCase(**case) for case in index["cases"]), index["left_out"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RigFailure(f"{folder} is damaged ({error})", hint=f"remove {folder} and run again") from error


def is_generated(name: str, cache: Path) -> bool:
    """Return whether a set is in the cache, or is none."""
    return name not in SETS or Store(cache, KIND, sums=False).find(_key(name)) is not None


def choose(cases: Sequence[OperatorCase], globs: Sequence[str] | None) -> list[OperatorCase]:
    """Return the cases whose name or operator matches any of the globs; all without one.

    Raises UsageError for a glob that matches nothing.
    """
    for glob in globs or ():
        if not any(case.matches(glob) for case in cases):
            raise UsageError(
                f"no operator matches {glob!r}", hint=suggestion(glob, sorted({c.operator for c in cases}))
            )
    return [case for case in cases if not globs or any(case.matches(glob) for glob in globs)]


def _prepared(file: Path) -> bytes:
    """Return a network as `run` compiles it; the file itself if there is nothing to prepare, or a build refuses it."""
    from harness.compile.models.sources import read_and_prepare

    try:
        network = read_and_prepare(file, file, {})
    except ModelError:
        return file.read_bytes()
    same_inputs = _input_names(network.model) == _input_names(parse(file))
    data: bytes = network.model.SerializeToString(deterministic=True)
    return data if network.changes and same_inputs else file.read_bytes()


def _input_names(model: Any) -> list[str]:
    return [value.name for value in model.graph.input]


def _key(name: str) -> str:
    sources = {file.name: sha256_of(file) for file in Path(__file__).parent.glob("*.py") if file.stem in _DECIDING}
    sources["preparation"] = digest(ROOT, sorted((ROOT / "harness" / "compile" / "models").rglob("*.py")))
    return key_of({"set": name, "sources": sources, **{library: version(library) for library in LIBRARIES}})


_DECIDING = ("catalogue", "networks", "sweep_table")


def _generate(name: str, folder: Path) -> None:
    left_out: dict[str, int] = {}
    cases: list[OperatorCase] = []
    for network in SETS[name](left_out):
        place = folder / network.name
        place.mkdir()
        (place / MODEL).write_bytes(network.model)
        (place / PREPARED).write_bytes(_prepared(place / MODEL))
        savez: Any = np.savez  # its stub takes no unpacked mapping
        savez(place / INPUTS, **network.inputs)
        savez(place / OUTPUTS, **network.outputs)
        data = key_of({file: sha256_of(place / file) for file in (INPUTS, OUTPUTS)})
        dtype = str(next(iter(network.inputs.values())).dtype)
        about = (network.name, network.operator, dtype, name)
        cases.append(OperatorCase(*about, sha256_of(place / MODEL), sha256_of(place / PREPARED), data))
    index = {"cases": [dataclasses.asdict(case) for case in cases], "left_out": left_out}
    (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")
    (folder / "title").write_text(f"{len(cases)} cases of the set {name}\n", encoding="utf-8")
