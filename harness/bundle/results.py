"""Results that came back: every line is held to the bundle that was packed, and none is taken on trust."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from device_runner.device import Identity
from harness.bundle.archive import read_members, unpack
from harness.bundle.chain import DEVICE as DEVICE_LINE
from harness.bundle.chain import END, PEAKS, SEEN, TURN, TURNS, Broken, lines_of
from harness.bundle.manifest import (
    MANIFEST,
    Manifest,
    PackedCase,
    Turn,
    built_of,
    check_files,
    id_of,
    manifest_of,
    plan_of,
)
from harness.bundle.pack import ANSWERS, BASE, HEAD, KEPT, KINDS
from harness.bundle.target import DEVICE
from harness.bundle.told import Seen, ToldDevice, identity_of, peaks_in, timed_there
from harness.cases.plan import unsupported
from harness.failures import UsageError
from harness.run.context import Run
from harness.run.loop import run_case
from harness.run.progress import Silent
from harness.run.record import Record, Releases
from harness.run.tuning import TuningStore

LARGEST_FILE_BYTES = 512 << 20
IGNORED = ("work",)
"""The runner's own folder beside the results."""
AGAIN = "copy the results folder again; if it is the same, run the bundle again"


@dataclass(frozen=True)
class Results:
    """What a bundle's turns came to, in the order they were run."""

    bundle: str
    manifest: Manifest
    taken: Sequence[tuple[Turn, Record]]
    peaks: Mapping[str, float] = field(default_factory=dict)
    """What the device does at best, in bytes and operations per second."""
    whole: bool = True
    """Whether every turn was run."""

    @property
    def records(self) -> list[Record]:
        """All records, in order."""
        return [record for _, record in self.taken]

    @property
    def missing(self) -> list[Turn]:
        """Turns that were not run."""
        return list(self.manifest.turns)[len(self.taken) :]


def read_results(source: Path, cache: Path, *, partial: bool = False, bundle: Path | None = None) -> Results:
    """Read a results folder, or an archive of one.

    It has to be of a bundle that was packed here, or of `bundle`, a bundle or its manifest. Raises UsageError for what
    was changed, is missing, twice or foreign; with `partial`, a run that was cut short is taken as far as it came.
    """
    if not source.exists():
        raise UsageError(f"there is no {source}", hint="name the folder that run.pyz wrote, or an archive of it")
    members = read_members(source, (MANIFEST, TURNS), LARGEST_FILE_BYTES, IGNORED)
    for name in (MANIFEST, TURNS):
        if name not in members:
            raise UsageError(f"{source} has no {name}", hint="nothing was run, or it is no results folder of run.pyz")
    text = members[MANIFEST]
    _require_known(text, cache, bundle)
    manifest = manifest_of(text)
    with _answers(id_of(text), manifest, cache, bundle) as folder:
        taken, peaks, ended = _read(members[TURNS], id_of(text), manifest, folder)
    results = Results(id_of(text), manifest, taken, peaks, ended and len(taken) == len(manifest.turns))
    if not results.whole and not partial:
        first = f", first {results.missing[0].case}" if results.missing else ""
        raise UsageError(
            f"{source} has {len(taken)} of {len(manifest.turns)} turns{first}: the run was cut short",
            hint="start run.pyz there again with the same folder, or take what there is with --partial",
        )
    return results


def _require_known(text: bytes, cache: Path, bundle: Path | None) -> None:
    """Raise UsageError for results of a bundle that nobody here packed."""
    if bundle:
        known = read_manifest(bundle)
    else:
        file = cache / KEPT / f"{id_of(text)[:24]}.json"
        known = file.read_bytes() if file.is_file() else b""
    if known != text:
        whose = f"not of {bundle}" if bundle else "of a bundle that was not packed here, or its manifest was changed"
        raise UsageError(f"the results are {whose}", hint="name the bundle that was run: --bundle FILE")


def read_manifest(bundle: Path) -> bytes:
    """The manifest of a bundle, be it a folder, an archive, or the manifest itself. Raises UsageError."""
    from harness.bundle.archive import first_member

    try:
        if bundle.is_dir():
            return (bundle / MANIFEST).read_bytes()
        return bundle.read_bytes() if bundle.suffix == ".json" else first_member(bundle, MANIFEST)
    except OSError as error:
        raise UsageError(f"{bundle} is no bundle: {error}", hint="name what `adreno-bench pack` made") from None


@contextmanager
def _answers(bundle_id: str, manifest: Manifest, cache: Path, bundle: Path | None) -> Iterator[Path | None]:
    """A folder with what answers are judged by, if that is done here. Raises UsageError if it is nowhere."""
    if manifest.kind in KINDS and KINDS[manifest.kind].python:
        yield None
        return
    with TemporaryDirectory(prefix="adreno-bench-") as scratch:
        folder = cache / KEPT / bundle_id[:24]
        if bundle and bundle.is_dir():
            folder = bundle
        elif bundle and bundle.suffix != ".json":
            folder = Path(scratch)
            unpack(bundle, folder)
        if not folder.is_dir():
            raise UsageError("the answers of this bundle are not here", hint="name the bundle itself: --bundle FILE")
        names = [path for path in manifest.files if path.startswith(f"{ANSWERS}/") and path.endswith(".npz")]
        check_files(folder, replace(manifest, files={path: manifest.files[path] for path in names}))
        yield folder


def _read(
    content: bytes, begin: str, manifest: Manifest, answers: Path | None
) -> tuple[list[tuple[Turn, Record]], dict[str, float], bool]:
    taken: list[tuple[Turn, Record]] = []
    peaks: dict[str, float] = {}
    ended = False
    cases = {(name, one.case): one for name, build in manifest.builds.items() for one in build.cases}
    phone: tuple[str, Identity] | None = None
    try:
        for told, _ in lines_of(content, begin):
            if ended:
                raise Broken(f"{TURNS} goes on after its end")
            if told["kind"] == TURN:
                taken.append(_turn(told, manifest, len(taken), cases))
            elif told["kind"] == DEVICE_LINE:
                phone = _phone(told, manifest, phone)
            elif told["kind"] == SEEN and phone and answers:
                record = _judged(told, manifest, cases, phone, answers)
                taken.append(_turn({"turn": told["turn"], "record": record}, manifest, len(taken), cases))
            elif told["kind"] == PEAKS and "said" in told:
                peaks = peaks_in(told)
            elif told["kind"] == PEAKS:
                peaks = {str(name): float(rate) for name, rate in told["peaks"].items()}
            elif told["kind"] != END:
                raise Broken(f"a line tells of {told['kind']!r}, which no runner of this bundle does")
            ended |= told["kind"] == END
    except (Broken, ValidationError) as broken:
        said = str(broken).splitlines()[0]
        raise UsageError(f"the results are not what the runner wrote: {said}", hint=AGAIN) from None
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        said = f"{type(error).__name__}: {error}"
        raise UsageError(f"the results are none of this version's ({said})", hint=AGAIN) from None
    _require_one_run([record for _, record in taken])
    return taken, peaks, ended


def _phone(told: Mapping[str, Any], manifest: Manifest, before: tuple[str, Identity] | None) -> tuple[str, Identity]:
    """The run's id and the device. Raises Broken if it is another one than before the run was taken up again."""
    phone = str(told["run"]), identity_of(told, DEVICE, manifest.builds[HEAD].runtime)
    if before and (before[0], before[1].key) != (phone[0], phone[1].key):
        raise Broken("the run was taken up again on another device")
    return phone


def _judged(
    told: Mapping[str, Any],
    manifest: Manifest,
    cases: Mapping[tuple[str, str], PackedCase],
    phone: tuple[str, Identity],
    answers: Path,
) -> dict[str, Any]:
    """What a turn comes to: as if it had been run just now, on a device that answers as that one did."""
    build, packed = manifest.builds[str(told["turn"][0])], cases[tuple(told["turn"])]
    run_id, identity = phone
    device = ToldDevice(DEVICE, identity, Seen.of(told))
    run = Run(device, TuningStore(answers), build.as_shipped, id=run_id, measure=timed_there, made_by=build.made_by)
    plan = plan_of(packed)
    plan = replace(plan, unsupported=unsupported(plan.case, identity))
    known = run_case(plan, built_of(packed, answers, manifest.files), run, Silent()).fields
    return {**known, "started_at": f"{_moment(str(told['at']))}", "recovery": []}


def _moment(at: str) -> str:
    """A moment in UTC as records have it, of nanoseconds. Raises ValueError."""
    seconds, _, fraction = at.partition(".")
    return datetime.fromisoformat(f"{seconds}.{fraction[:6]:0<6}+00:00").isoformat(timespec="microseconds")


def _turn(
    told: Mapping[str, Any], manifest: Manifest, place: int, cases: Mapping[tuple[str, str], PackedCase]
) -> tuple[Turn, Record]:
    turn = Turn(*map(str, told["turn"]))
    if place >= len(manifest.turns) or manifest.turns[place] != turn:
        raise Broken(f"turn {place + 1} is of {turn.case} ({turn.build}), which was not packed there")
    record, build = Record.model_validate(told["record"]), manifest.builds[turn.build]
    packed = cases[turn.build, turn.case]
    said = (record.case, record.artifact, record.quirks, record.as_shipped, record.device, record.identity_key)
    meant = (turn.case, packed.artifact.key, tuple(packed.quirks), build.as_shipped, DEVICE, record.identity.key)
    if said != meant or {"tvm": record.tvm, "ffi": record.ffi, "harness": record.harness} != dict(build.made_by):
        raise Broken(f"the record of {turn.case} ({turn.build}) is not of what was packed")
    if turn.build == BASE:  # it was run to compare with: the case's latest build is the head's
        return turn, record.model_copy(update={"compiled_with": Releases(tvm=record.tvm, ffi=record.ffi)})
    return turn, record


def _require_one_run(records: Sequence[Record]) -> None:
    """Raise UsageError unless all records are of one device and one run."""
    for what, values in (
        ("device", Counter(record.identity_key for record in records)),
        ("run", Counter(record.run for record in records)),
    ):
        if len(values) > 1:
            raise UsageError(
                f"the results are of more than one {what}: {', '.join(values)}", hint="run it on one device"
            )
