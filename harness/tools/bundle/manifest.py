"""The manifest of a bundle: what is in it, as plain values; and what the parts of a bundle are called."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

import msgspec

from device_runner.device import Loadable, ThermalLimits
from device_runner.failures import Failure
from device_runner.files import require_name
from device_runner.foreign_json import read_json
from device_runner.store import sha256_of
from harness.base.case import Case
from harness.base.failures import UsageError, revived
from harness.base.plan import Budget, Job, Plan
from harness.compile.artifacts.artifact import Answers, Artifact, CompileResult

SCHEMA = 1
MANIFEST = "manifest.json"
LINES = "turns.jsonl"
"""What a bundle's runner writes: one line for each turn."""
HEAD, BASE = "head", "base"
"""The builds: the one that was asked for, and the one that it is compared with."""
ANSWERS = "answers"
FOLDER = "bundles"
"""Folder of the cache with the manifests of what was packed here, and answers to judge by."""
LARGEST_MANIFEST_BYTES = 64 << 20


class BundleTurn(NamedTuple):
    """One session: a case of a build."""

    build: str
    case: str


@dataclass(frozen=True)
class PackedLibrary:
    """An artifact in a bundle."""

    key: str
    library: str
    """File of the library; empty if there is none."""
    size_bytes: int = 0
    compiled: Mapping[str, Any] = field(default_factory=dict)
    failure: Mapping[str, str] = field(default_factory=dict)
    """What the compiler said instead: outcome, message, hint and evidence."""


@dataclass(frozen=True)
class PackedCase:
    """One case of a build: its plan, and what was built for it."""

    case: str
    artifact: PackedLibrary
    answers: str
    """Key of the oracle's answers, and the folder that they lie in, below `answers`."""
    quirks: Sequence[str]
    relative_tolerance: float
    budget: Mapping[str, Any]
    changes: Sequence[str] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why there are no answers."""
    unchecked: str = ""
    """Why nobody outside TVM could give the answers."""
    witness: str = ""
    """Key of LLVM's answers; beside the oracle's. Empty if there are none."""
    range: str = ""
    """Key of what tells whether half precision can hold the network's numbers; beside the answers."""
    reference: PackedLibrary | None = None
    thermal_limits: Mapping[str, Any] = field(default_factory=dict)
    rounding_factor: float = 0.0
    """Rounding factor of the plan; 0 if its answers have no rounding."""


@dataclass(frozen=True)
class BundleBuild:
    """The cases as one compiler and harness made them."""

    made_by: Mapping[str, str]
    """Releases: `tvm`, `ffi`, `harness`."""
    as_shipped: bool
    libraries: Sequence[str]
    """Files to load, in this order."""
    loader: str
    """An OpenCL loader for a machine that has none; empty if there is none for it."""
    probe: str
    cases: Sequence[PackedCase]
    runtime: str = ""
    """Hash of the runtime that was brought for a phone."""
    peaks: str = ""
    """What measures the device's peak rates; empty of a bundle that lacks it."""


@dataclass(frozen=True)
class Manifest:
    """All that is in a bundle."""

    kind: str
    """Kind of the device: `linux-x86_64`, `linux-aarch64`, `android-arm64`."""
    builds: Mapping[str, BundleBuild]
    turns: Sequence[BundleTurn]
    files: Mapping[str, str]
    """SHA-256 of every file but the manifest, by its path below the bundle's folder."""
    schema: int = SCHEMA

    def text(self) -> bytes:
        """Return the file's content; its hash is the bundle's id."""
        return json.dumps(asdict(self), indent=1, sort_keys=True).encode()

    def packed(self, turn: BundleTurn) -> PackedCase:
        """Return the case of a turn."""
        return next(case for case in self.builds[turn.build].cases if case.case == turn.case)


def id_of(text: bytes) -> str:
    """Return the id of the bundle with this manifest."""
    return hashlib.sha256(text).hexdigest()


def manifest_of(text: bytes) -> Manifest:
    """Read a manifest. Raises UsageError for what is none, or one of another version."""
    try:
        fields = read_json(text)
        if fields["schema"] != SCHEMA:
            raise UsageError(
                f"the bundle is of version {fields['schema']}, and this adreno-bench reads version {SCHEMA}",
                hint="use the release of adreno-bench that packed it, or pack it again",
            )
        manifest = msgspec.convert(fields, Manifest)
        _check(manifest)
    except (ValueError, LookupError, TypeError, StopIteration) as error:
        raise UsageError(
            f"{MANIFEST} was not written by adreno-bench ({type(error).__name__}: {error})", hint="is it a bundle?"
        ) from None
    return manifest


def _check(manifest: Manifest) -> None:
    """Raise ValueError or StopIteration for names that are none, and for paths that leave the bundle's folder."""
    paths = [*manifest.files]
    for name, build in manifest.builds.items():
        require_name(name)
        paths += [*build.libraries, build.loader, build.probe, build.peaks]
        for case in build.cases:
            Case.parse(case.case)
            for key in (case.answers, case.witness or case.answers, case.range or case.answers):
                require_name(key)
            paths += [library.library for library in (case.artifact, case.reference) if library]
    for path in filter(None, paths):
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or str(pure) != path or "\\" in path:
            raise ValueError(f"the path {path!r} leaves the bundle")
    for turn in manifest.turns:
        manifest.packed(turn)


def check_files(source: Path, folder: Path, manifest: Manifest) -> None:
    """Raise UsageError unless the bundle in a folder, from `source`, has all its files, as they were packed."""
    if (folder / LINES).is_file() and not (folder / ANSWERS).is_dir():
        raise UsageError(f"{source} is not a bundle: it holds results", hint="name what `adreno-bench pack` made")
    for path, digest in manifest.files.items():
        file = folder / path
        if not file.is_file():
            raise UsageError(f"{path} is missing in the bundle", hint="unpack it again")
        if sha256_of(file) != digest:
            raise UsageError(f"{path} changed since it was packed", hint="copy the bundle again, or pack it again")


def plan_of(packed: PackedCase) -> Plan:
    """Return the plan of a packed case: its jobs are done, and only their keys matter."""
    witness = Job("witness", packed.witness, packed.case, {}) if packed.witness else None
    return Plan(
        case=Case.parse(packed.case),
        compile=Job("compile", packed.artifact.key, packed.case, {}),
        oracle=Job("oracle", packed.answers, packed.case, {}, witness),
        quirks=tuple(packed.quirks),
        relative_tolerance=packed.relative_tolerance,
        rounding_factor=packed.rounding_factor,
        budget=Budget(**packed.budget),
        changes=tuple(packed.changes),
        thermal_limits=ThermalLimits(**packed.thermal_limits),
        range=Job("range", packed.range, packed.case, {}) if packed.range else None,
        reference=Job("reference", packed.reference.key, "reference kernel", {}) if packed.reference else None,
    )


def built_of(packed: PackedCase, folder: Path, digests: Mapping[str, str]) -> dict[str, Artifact | Answers | Failure]:
    """Return the results of the plan's jobs, with files below a bundle's folder."""
    libraries = filter(None, (packed.artifact, packed.reference))
    answers = {packed.answers: packed.unchecked, packed.witness: "", packed.range: ""}
    return {
        **{library.key: _artifact(library, folder, digests) for library in libraries},
        **{key: Answers(folder / ANSWERS / key, True, unchecked) for key, unchecked in answers.items() if key},
        **({packed.answers: revived(packed.refused)} if packed.refused else {}),
    }


def _artifact(packed: PackedLibrary, folder: Path, digests: Mapping[str, str]) -> Artifact | Answers | Failure:
    if packed.failure:
        return revived(packed.failure)
    compiled = CompileResult(**packed.compiled)
    loadable = Loadable(folder / packed.library, digests[packed.library], compiled.vdevices)
    return Artifact(packed.key, loadable, compiled, packed.size_bytes, True)
