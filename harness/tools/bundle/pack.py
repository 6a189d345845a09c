"""Packing: everything is built for the kind of device, and laid out with its hashes."""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from graphlib import TopologicalSorter
from itertools import islice, zip_longest
from pathlib import Path, PurePosixPath

from device_runner.device import Identity
from device_runner.failures import Failure
from device_runner.files import SCRATCH_SUFFIX, scratch_folder, write_whole
from device_runner.installed_tvm import package_folder
from device_runner.runtimes import opencl, probe
from device_runner.runtimes.phone import RuntimeStore
from device_runner.runtimes.phone.elf import read_elf
from device_runner.runtimes.phone.store import PROGRAM
from device_runner.session.identification import LEAST_IMAGE
from device_runner.store import sha256_of
from harness.base.failures import UsageError, described, reason_alone
from harness.base.plan import Job, Plan
from harness.compile.artifacts.artifact import (
    BRANCHES,
    INPUTS,
    JUDGE,
    LABELLED,
    LEEWAY,
    OTHER_INPUTS,
    OTHER_OUTPUTS,
    OUTPUTS,
    RANGE,
    Answers,
    Artifact,
    Built,
)
from harness.judge.sides import SeriesKey
from harness.judge.stats.turns import Arm, order
from harness.measure.context import made_here
from harness.measure.workbench import Request, no_device
from harness.tools.bundle import turn_files
from harness.tools.bundle.archive import ending_of, unpack, write_archive
from harness.tools.bundle.manifest import (
    ANSWERS,
    BASE,
    FOLDER,
    HEAD,
    MANIFEST,
    BundleBuild,
    BundleTurn,
    Manifest,
    PackedCase,
    PackedLibrary,
    check_files,
    id_of,
    manifest_of,
)
from harness.tools.shared.full_disk import writing
from harness.tools.shared.kernels import peaks

LOADER = "loader/libOpenCL.so.1"
"""OpenCL loader in a folder of its own: the runner searches `lib`, and uses this one only if there is no other."""


@dataclass(frozen=True)
class MachineKind:
    """A kind of device that bundles are made for."""

    name: str
    abi: str
    identity: Identity
    """What artifacts are built for, where nothing is known of the device: as little as every device of the kind has."""


def _least(kind: str, abi: str) -> Identity:
    """Return a device of which nothing is known but its processor: images are as small as OpenCL allows."""
    return replace(Identity(kind, "", abi=abi), **LEAST_IMAGE)  # type: ignore[arg-type]


KINDS = {
    "linux-x86_64": MachineKind("linux-x86_64", "x86_64", _least("local", "x86_64")),
    "linux-aarch64": MachineKind("linux-aarch64", "aarch64", _least("phone", "aarch64")),
    "android-arm64": MachineKind("android-arm64", "arm64-v8a", no_device("arm64-v8a")),
}


@dataclass(frozen=True)
class Runtime:
    """TVM's runtime for a kind of device."""

    libraries: Sequence[Path]
    """Libraries in the order to load them."""
    loader: Path | None = None
    """An OpenCL loader for a machine that has none."""
    digest: str = ""
    """Digest of a runtime that was added (`adreno-bench runtime list`)."""


@dataclass(frozen=True)
class PackedBundle:
    """A bundle that was made."""

    file: Path
    id: str
    manifest: Manifest
    size_bytes: int

    @property
    def failures(self) -> list[PackedCase]:
        """The cases that have no library."""
        return [case for build in self.manifest.builds.values() for case in build.cases if case.artifact.failure]


def pack(
    request: Request,
    kind: MachineKind,
    built: Callable[[Sequence[Plan]], Built],
    out: Path,
    against: Path | None = None,
    sessions: int = 1,
) -> PackedBundle:
    """Make a bundle of a request's cases; with `against`, another bundle, its cases are the base.

    `sessions` are those of each case, of each build. Raises UsageError, SetupMissing, DiskFull.
    """
    ending_of(out)
    plans = request.plans(kind.identity)
    if scheduled := [plan.case.id for plan in plans if plan.default_schedules]:
        hint = "pack others: --case '*-untuned'"
        raise UsageError(f"cases with tuned schedules cannot be packed: {', '.join(scheduled)}", hint=hint)
    runtime = runtime_of(kind, request.cache)  # what is missing is told before anything is built
    results = built(plans)
    with scratch_folder() as scratch, writing(scratch, out.parent):
        folder = scratch / "bundle"
        builds = {HEAD: _lay_out(folder, request, kind, runtime, plans, results)}
        if against:
            builds = {BASE: _other(against, kind, folder), **builds}
        turns = _in_turns(builds[BASE], builds[HEAD], sessions) if against else _one_after_the_other(builds, sessions)
        turn_files.lay_out(folder, builds, turns, request.cache, kind.abi)
        files = {file.relative_to(folder).as_posix(): sha256_of(file) for file in _files(folder)}
        manifest = Manifest(kind.name, builds, turns, files)
        (folder / MANIFEST).write_bytes(manifest.text())
        _remember(request.cache, manifest, folder / ANSWERS)
        _place(folder, out)
    size_bytes = out.stat().st_size if out.is_file() else sum(file.stat().st_size for file in _files(out))
    return PackedBundle(out, id_of(manifest.text()), manifest, size_bytes)


def _one_after_the_other(builds: Mapping[str, BundleBuild], sessions: int) -> list[BundleTurn]:
    """Order the turns: each case once, then each again. A case without a library has one turn."""
    (name, build), *_ = builds.items()
    return [
        BundleTurn(name, case.case) for session in range(sessions) for case in build.cases if not session or _runs(case)
    ]


def _in_turns(base: BundleBuild, head: BundleBuild, sessions: int) -> list[BundleTurn]:
    """Return base and head of each case in the order of `harness.judge`, a block of each case at a time.

    The first session of both sides screens the case; the rest are shuffled blocks of two of each, seeded by its name.
    """
    there = {case.case: case for case in base.cases}
    blocks = [_blocks(there.get(case.case), case, head.as_shipped, sessions) for case in head.cases]
    gone = [BundleTurn(Arm.BASE.value, case) for case in there if case not in {case.case for case in head.cases}]
    return [turn for round_ in zip_longest(*blocks, fillvalue=[]) for block in round_ for turn in block] + gone


def _runs(packed: PackedCase) -> bool:
    """Return whether there is anything to run."""
    return not packed.artifact.failure and not packed.refused


def _blocks(base: PackedCase | None, head: PackedCase, as_shipped: bool, sessions: int) -> list[list[BundleTurn]]:
    turn = {arm: BundleTurn(arm.value, head.case) for arm in Arm}
    if base is None:
        return [[turn[Arm.HEAD]]]
    begun = [Arm.BASE, Arm.HEAD]
    if not _runs(base) or not _runs(head):
        return [[turn[arm] for arm in begun]]
    whole = max(1, -(-sessions // 2))  # blocks of four, two of each side
    series = SeriesKey("", head.case, as_shipped)  # seeds the order, on whichever device it will be
    arms = [*begun, *islice(order(str(series), begun), 4 * whole - len(begun))]
    return [[turn[arm] for arm in arms[start : start + 4]] for start in range(0, len(arms), 4)]


def _lay_out(
    folder: Path, request: Request, kind: MachineKind, runtime: Runtime, plans: Sequence[Plan], done: Built
) -> BundleBuild:
    """Copy the files of the head below the bundle's folder."""
    prober, meter = (make(request.cache, kind.abi) for make in (probe.library, peaks.module))
    return BundleBuild(
        made_by=made_here(),
        as_shipped=request.quirks.as_shipped,
        libraries=[_copied(folder, file, f"lib/{HEAD}/{file.name}") for file in runtime.libraries],
        loader=_copied(folder, runtime.loader, f"lib/{HEAD}/{LOADER}") if runtime.loader else "",
        probe=_copied(folder, prober, f"lib/{HEAD}/{prober.name}"),
        peaks=_copied(folder, meter, f"lib/{HEAD}/{meter.name}"),
        cases=[_packed(folder, plan, done) for plan in plans],
        runtime=runtime.digest,
    )


def _packed(folder: Path, plan: Plan, results: Built) -> PackedCase:
    answers = results[plan.oracle.key]
    truth = (INPUTS, OUTPUTS, OTHER_INPUTS, OTHER_OUTPUTS, LABELLED, LEEWAY, BRANCHES, JUDGE)
    witness = (OUTPUTS, JUDGE)
    for job, files in ((plan.oracle, truth), (plan.witness, witness), (plan.range, (RANGE,))):
        result = results.get(job.key) if job else None
        if job and isinstance(result, Answers):
            for file in files:
                if (result.folder / file).exists():
                    _copied(folder, result.folder / file, f"answers/{job.key}/{file}")

    def key_of_answers(job: Job | None) -> str:
        return job.key if job and isinstance(results.get(job.key), Answers) else ""

    reference = plan.reference and results.get(plan.reference.key)
    return PackedCase(
        case=plan.case.id,
        artifact=_library(folder, f"artifacts/{HEAD}/{plan.case.id}.so", plan.compile.key, results[plan.compile.key]),
        answers=plan.oracle.key,
        refused=described(answers) if isinstance(answers, Failure) else {},
        quirks=list(plan.quirks),
        relative_tolerance=plan.relative_tolerance,
        rounding_factor=plan.rounding_factor,
        budget=asdict(plan.budget),
        changes=list(plan.changes),
        thermal_limits=asdict(plan.thermal_limits),
        unchecked=answers.unchecked if isinstance(answers, Answers) else "",
        witness=key_of_answers(plan.witness),
        range=key_of_answers(plan.range),
        reference=_library(folder, f"artifacts/{HEAD}/reference.so", plan.reference.key, reference)
        if plan.reference and isinstance(reference, Artifact)
        else None,
    )


def _library(folder: Path, place: str, key: str, result: Artifact | Answers | Failure) -> PackedLibrary:
    if isinstance(result, Failure):
        return PackedLibrary(key, "", failure=described(result))
    assert isinstance(result, Artifact)
    library = _copied(folder, result.loadable.library, place)
    return PackedLibrary(key, library, result.size_bytes, asdict(result.compiled))


def runtime_of(kind: MachineKind, cache: Path) -> Runtime:
    """TVM's runtime for a kind of device: this host's own, or one that was brought for it. Raises SetupMissing."""
    if kind.abi != platform.machine():
        runtime = RuntimeStore(cache).runtime_for(kind.abi)
        return Runtime(_in_order(runtime.folder), None, runtime.digest)
    tvm, ffi = package_folder("tvm") / "lib", package_folder("tvm_ffi") / "lib"
    names = ("libtvm_runtime.so", "libtvm_runtime_extra.so")
    libraries = [ffi / "libtvm_ffi.so", *(tvm / name for name in names if (tvm / name).exists())]
    own = opencl.sidecar(cache) if opencl.needed() else opencl.own()
    return Runtime([*libraries, *([own] if own not in libraries else [])], _loader())


def _in_order(folder: Path) -> list[Path]:
    """Return the libraries of a runtime in a folder, each after those that it needs."""
    files = {file.name: file for file in sorted(folder.iterdir()) if file.name != PROGRAM}
    needs = {name: [need for need in read_elf(file).needed if need in files] for name, file in files.items()}
    return [files[name] for name in TopologicalSorter(needs).static_order()]


def _loader() -> Path | None:
    """Return this host's OpenCL loader."""
    try:
        ctypes.CDLL("libOpenCL.so.1")
    except OSError:
        return None
    mapped = re.search(r"\S*/libOpenCL\.so\S*", Path("/proc/self/maps").read_text(encoding="utf-8"))
    return Path(mapped[0]).resolve() if mapped else None


def _other(source: Path, kind: MachineKind, folder: Path) -> BundleBuild:
    """Return the build of another bundle, its files laid out as the base. Raises UsageError for what is none."""
    with scratch_folder() as scratch:
        there = source
        if not source.is_dir():
            there = scratch
            unpack(source, there)
        try:
            manifest = manifest_of((there / MANIFEST).read_bytes())
        except OSError as error:
            raise UsageError(
                f"{source} is not a bundle: {reason_alone(error)}", hint="`adreno-bench pack` makes one"
            ) from None
        check_files(source, there, manifest)
        if manifest.kind != kind.name:
            raise UsageError(f"{source} is for {manifest.kind}, not for {kind.name}", hint="pack both for one kind")
        build = manifest.builds[HEAD]
        for path in manifest.files:
            plain = path.startswith(f"{ANSWERS}/") and turn_files.PLAIN in PurePosixPath(path).parts
            if path.startswith((f"lib/{HEAD}/", f"artifacts/{HEAD}/", f"{ANSWERS}/")) and not plain:
                _copied(folder, there / path, _as_base(path))
    return replace(
        build,
        libraries=[_as_base(path) for path in build.libraries],
        loader=_as_base(build.loader),
        probe=_as_base(build.probe),
        peaks=_as_base(build.peaks),
        cases=[_case_as_base(case) for case in build.cases],
    )


def _case_as_base(packed: PackedCase) -> PackedCase:
    reference = packed.reference and replace(packed.reference, library=_as_base(packed.reference.library))
    artifact = replace(packed.artifact, library=_as_base(packed.artifact.library))
    return replace(packed, artifact=artifact, reference=reference)


def _as_base(path: str) -> str:
    return re.sub(f"^(lib|artifacts)/{HEAD}/", rf"\1/{BASE}/", path)


def _copied(folder: Path, source: Path, place: str) -> str:
    file = folder / place
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, file)
    return place


def _place(folder: Path, out: Path) -> None:
    """Put the bundle where it was asked for."""
    if not ending_of(out):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UsageError(f"{out} already exists", hint="name another folder, or remove it")
        shutil.copytree(folder, out, dirs_exist_ok=True)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    write_archive(folder, out)


def _remember(cache: Path, manifest: Manifest, answers: Path) -> None:
    """Keep what `ingest` needs: the manifest, and the answers."""
    text = manifest.text()
    place = cache / FOLDER / id_of(text)[:24]
    write_whole(place.with_suffix(".json"), text)
    if not place.exists():
        scratch = place.with_name(f".{place.name}{SCRATCH_SUFFIX}")
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.copytree(answers, scratch / ANSWERS, ignore=shutil.ignore_patterns(turn_files.PLAIN))
        scratch.rename(place)


def _files(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
