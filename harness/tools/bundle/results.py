"""Results that came back: every line is held to the bundle that was packed, and none is taken on trust.

Each line begins with its link, a SHA-256 of the line's own text and of the link before it; the first one's predecessor
is the bundle's id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from device_runner.device import Identity, Program
from device_runner.files import scratch_folder
from device_runner.foreign_json import read_json
from harness.base.failures import UsageError, reason_alone
from harness.base.plan import Plan, unsupported
from harness.compile.artifacts.artifact import CRC, Artifact, Built
from harness.measure.context import Run
from harness.measure.facts import Batches, Sampling, Timing
from harness.measure.loop import run_case
from harness.measure.probes.base import Probe
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record, Releases, record_of
from harness.measure.standard_probes import LatencyProbe, standard_probes
from harness.measure.tuning import TuningStore
from harness.tools.bundle.archive import find_files, first_member, unpack
from harness.tools.bundle.manifest import (
    ANSWERS,
    BASE,
    FOLDER,
    HEAD,
    LARGEST_MANIFEST_BYTES,
    LINES,
    MANIFEST,
    BundleTurn,
    Manifest,
    built_of,
    check_files,
    id_of,
    manifest_of,
    plan_of,
)
from harness.tools.bundle.replay_device import REFERENCE, TUNE, TURNS, ReplayDevice, TurnReport, identity_of, peaks_in
from harness.tools.bundle.replay_session import BadReport, ReplayProgram

DIGEST_DIGITS = 64
DEVICE = "bundle"
"""What records of a bundle have for what a person types after `--device`."""
SIZE_LIMITS = {MANIFEST: LARGEST_MANIFEST_BYTES, LINES: 512 << 20}
"""The files of results, and how many bytes each may have."""
LONGEST_LINE_BYTES = 128 << 20
"""A line has a turn's outputs, two digits to a byte."""
DEVICES = {
    "linux-x86_64": ("local", "x86_64"),
    "linux-aarch64": ("local", "aarch64"),
    "android-arm64": ("phone", "arm64-v8a"),
}
"""What a device is that runs a kind of bundle: its own kind, and its processor."""
IGNORED = ("work",)
"""The runner's own folder beside the results."""
AGAIN = "copy the results folder again; if it is the same, run the bundle again"


@dataclass(frozen=True)
class BundleResults:
    """Records of a bundle's turns, in the order they were run."""

    bundle: str
    manifest: Manifest
    turns: Sequence[tuple[BundleTurn, Record]]
    peaks: Mapping[str, float] = field(default_factory=dict)
    """What the device does at best, in bytes and operations per second."""
    whole: bool = True
    """Whether every turn was run."""

    @property
    def records(self) -> list[Record]:
        """All records, in order."""
        return [record for _, record in self.turns]

    @property
    def missing(self) -> list[BundleTurn]:
        """Turns that were not run."""
        return list(self.manifest.turns)[len(self.turns) :]


def read_results(source: Path, cache: Path, *, partial: bool = False, bundle: Path | None = None) -> BundleResults:
    """Read a results folder, or an archive of one.

    It has to be of a bundle that was packed here, or of `bundle`, a bundle or its manifest. Raises UsageError for what
    was changed, is missing, twice or foreign; with `partial`, a run that was cut short is taken as far as it came.
    """
    if not source.exists():
        raise UsageError(f"there is no {source}", hint="name the folder that run.sh wrote, or an archive of it")
    with scratch_folder() as scratch:
        files = find_files(source, SIZE_LIMITS, scratch, IGNORED)
        for name in SIZE_LIMITS:
            if name not in files:
                hint = "nothing was run, or it is no results folder of a bundle"
                raise UsageError(f"{source} has no {name}", hint=hint)
        text = files[MANIFEST].read_bytes()
        _require_known(text, cache, bundle)
        manifest = manifest_of(text)
        reader = _Reader(manifest, scratch, _answers(text, manifest, cache, bundle, scratch))
        with files[LINES].open("rb") as lines:
            reader.read(lines, id_of(text))
    turns = reader.turns
    results = BundleResults(
        id_of(text), manifest, turns, reader.peaks, reader.ended and len(turns) == len(manifest.turns)
    )
    if not results.whole and not partial:
        first = f", first {results.missing[0].case}" if results.missing else ""
        raise UsageError(
            f"{source} has {len(turns)} of {len(manifest.turns)} turns{first}: the run was cut short",
            hint="run the bundle there again with the same folder, or take what there is with --partial",
        )
    return results


def _require_known(text: bytes, cache: Path, bundle: Path | None) -> None:
    """Raise UsageError for results of a bundle that nobody here packed."""
    if bundle:
        manifest = read_manifest(bundle)
    else:
        file = cache / FOLDER / f"{id_of(text)[:24]}.json"
        manifest = file.read_bytes() if file.is_file() else b""
    if manifest != text:
        whose = f"not of {bundle}" if bundle else "of a bundle that was not packed here, or its manifest was changed"
        raise UsageError(f"the results are {whose}", hint="name the bundle that was run: --bundle FILE")


def read_manifest(bundle: Path) -> bytes:
    """Return the manifest of a bundle, be it a folder, an archive, or the manifest itself. Raises UsageError."""
    try:
        if bundle.is_dir():
            return (bundle / MANIFEST).read_bytes()
        return bundle.read_bytes() if bundle.suffix == ".json" else first_member(bundle, MANIFEST)
    except OSError as error:
        raise UsageError(
            f"{bundle} is not a bundle: {reason_alone(error)}", hint="name what `adreno-bench pack` made"
        ) from None


def _answers(text: bytes, manifest: Manifest, cache: Path, bundle: Path | None, scratch: Path) -> Path:
    """Return a folder with what answers are judged by. Raises UsageError if it is nowhere."""
    folder = cache / FOLDER / id_of(text)[:24]
    if bundle and bundle.is_dir():
        folder = bundle
    elif bundle and bundle.suffix != ".json":
        folder = scratch / "bundle"
        unpack(bundle, folder)
    if not folder.is_dir():
        raise UsageError("the answers of this bundle are not here", hint="name the bundle itself: --bundle FILE")
    names = [path for path in manifest.files if path.startswith(f"{ANSWERS}/") and path.endswith(".npz")]
    check_files(bundle or folder, folder, replace(manifest, files={path: manifest.files[path] for path in names}))
    return folder


class BrokenLine(ValueError):
    """A line is not what was written there."""


def link_of(text: bytes, before: str) -> str:
    """Return what binds a line's text to all before it, which is the line's first word."""
    return hashlib.sha256(before.encode() + b"\n" + text).hexdigest()


def lines_of(content: IO[bytes], begin: str) -> Iterator[dict[str, Any]]:
    """Yield what the lines hold, one after the other. A last line that was cut short is left out. Raises BrokenLine."""
    before = begin
    for number, line in enumerate(iter(lambda: content.readline(LONGEST_LINE_BYTES), b""), 1):
        if not line.endswith(b"\n"):
            if len(line) == LONGEST_LINE_BYTES:
                raise BrokenLine(f"line {number} of {LINES} is longer than {LONGEST_LINE_BYTES >> 20} MiB")
            return
        text = line[DIGEST_DIGITS + 1 : -1]
        link = link_of(text, before)
        if line != b"%b %b\n" % (link.encode(), text):
            raise BrokenLine(f"line {number} of {LINES} does not follow from the line before it")
        before = link
        try:
            yield read_json(text)
        except ValueError as error:
            raise BrokenLine(f"line {number} of {LINES} is no JSON: {error}") from None


@dataclass
class _Reader:
    """Takes the lines of a results folder, one after the other."""

    manifest: Manifest
    scratch: Path
    answers: Path
    """What answers are judged by."""
    turns: list[tuple[BundleTurn, Record]] = field(default_factory=list)
    peaks: dict[str, float] = field(default_factory=dict)
    ended: bool = False
    device: tuple[str, Identity] | None = None
    """The run's id, and who the device is."""

    def read(self, content: IO[bytes], begin: str) -> None:
        """Take all of them. Raises UsageError for what the runner did not write."""
        kinds: dict[str, Callable[[Mapping[str, Any]], None]] = {
            "device": self._take_device,
            "seen": self._take_turn,
            "peaks": self._take_peaks,
            "end": lambda _: None,
        }
        try:
            for line in lines_of(content, begin):
                if self.ended:
                    raise BrokenLine(f"{LINES} continues after its last line")
                if line["kind"] not in kinds:
                    raise BrokenLine(f"a line has the kind {line['kind']!r}, which no runner of this bundle writes")
                kinds[line["kind"]](line)
                self.ended = line["kind"] == "end"
        except (BrokenLine, BadReport, ValidationError) as broken:
            message = str(broken).splitlines()[0]
            raise UsageError(f"the results are not what the runner wrote: {message}", hint=AGAIN) from None
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            message = f"{type(error).__name__}: {error}"
            raise UsageError(f"the results are not of this version ({message})", hint=AGAIN) from None

    def _take_device(self, line: Mapping[str, Any]) -> None:
        """Raise BrokenLine if the bundle is not for it, or if it is another one than before the run was resumed."""
        run_id, identity = str(line["run"]), identity_of(line, DEVICE, self.manifest.builds[HEAD].runtime)
        if self.device and (self.device[0], self.device[1].key) != (run_id, identity.key):
            raise BrokenLine("the run was resumed on another device")
        if (identity.kind, identity.abi) != (kind := DEVICES.get(self.manifest.kind)):
            who = f"a {identity.kind!r:.100} with the processor {identity.abi!r:.100}"
            raise BrokenLine(f"{who} does not run bundles for {self.manifest.kind}: {kind} does")
        self.device = run_id, identity

    def _take_peaks(self, line: Mapping[str, Any]) -> None:
        self.peaks = peaks_in(line)

    def _take_turn(self, line: Mapping[str, Any]) -> None:
        """Judge a turn as if it had been run just now, on a device that answers as that one did."""
        if self.device is None:
            raise BrokenLine("a turn ran before the device was identified")
        turn, place = BundleTurn(*map(str, line["turn"])), len(self.turns)
        if place >= len(self.manifest.turns) or self.manifest.turns[place] != turn:
            raise BrokenLine(f"turn {place + 1} is of {turn.case} ({turn.build}), which was not packed there")
        report, packed, build = TurnReport.of(line), self.manifest.packed(turn), self.manifest.builds[turn.build]
        run_id, identity = self.device
        device, tunings = ReplayDevice(DEVICE, identity, report), TuningStore(self.scratch / turn.build)
        run = Run(device, tunings, build.as_shipped, id=run_id, probes=_probes, made_by=build.made_by)
        plan, built = plan_of(packed), built_of(packed, self.answers, self.manifest.files)
        plan = replace(plan, unsupported=unsupported(plan.case, identity))
        _keep_preparations(report, plan, built, run)
        fields = run_case(plan, built, run, SilentProgress()).fields
        record = record_of({**fields, "started_at": _moment(str(line["at"])), "recovery": []})
        if why := wrong_times_in(record):
            raise BrokenLine(f"the record of {turn.case} ({turn.build}) cannot be: {why}")
        if turn.build == BASE:  # it was run to compare with: the case's latest build is the head's
            record = record.model_copy(update={"compiled_with": Releases(tvm=record.tvm, ffi=record.ffi)})
        self.turns.append((turn, record))


def _keep_preparations(turn: TurnReport, plan: Plan, built: Built, run: Run) -> None:
    """Keep what the sessions before the measured one made, where a run looks for it before it holds them."""

    def keep(session: str, kind: str, key: str) -> None:
        report = turn.preparations.get(session)
        if report and report.done:
            # What only the device needs stayed there: its place is taken by a word.
            tuning = bytes.fromhex(report.text("tuning")) or str(report.fields.get("turns", session)).encode()
            run.tunings.find_or_make(kind, key, run.device, lambda: tuning)

    keep(TUNE, plan.case.path, plan.compile.key)
    kernel = built.get(plan.reference.key) if plan.reference else None
    if isinstance(kernel, Artifact):
        keep(REFERENCE, "opencl", kernel.key)
        keep(TURNS, "reference turns", f"{kernel.compiled.facts[CRC]:08x}")


def _probes(*case: Any) -> Sequence[Probe]:
    """Return the standard probes of a case, of which one takes the runner's samples."""
    return [replace(p, measure=_times_of) if isinstance(p, LatencyProbe) else p for p in standard_probes(*case)]


def _times_of(program: Program, *_: object, first_ms: float) -> Timing:
    """Return the samples that the runner took, in place of `harness.measure.probes.latency.measure`."""
    assert isinstance(program, ReplayProgram)
    return program.times


def _moment(at: str) -> str:
    """Return a moment in UTC as records have it, of nanoseconds. Raises ValueError."""
    seconds, _, fraction = at.partition(".")
    return datetime.fromisoformat(f"{seconds}.{fraction[:6]:0<6}+00:00").isoformat(timespec="microseconds")


SHORTEST_MS, LONGEST_MS = 1e-9, 1e12
"""Limits of a time, those of `harness.judge.stats.session`."""
MOST_SAMPLES = 100_000
"""Five times as many inferences as are timed in a row."""


def wrong_times_in(record: Record) -> str:
    """Return which times of a record cannot be, in a few words; empty if all can.

    Times that are none are refused of what comes from elsewhere. In a file of our own they tell of a clock that stood
    still, and `harness.judge` names them.
    """
    reference, batches, sampling = record.reference, record.part(Batches), record.part(Sampling)
    of_host = {
        "wall_ms": record.wall_ms,
        "throttled_ms": record.throttled_ms,
        "warm_up_ms": sampling.warm_up_ms if sampling else (),
        "batched_ms": batches.batched_ms if batches else (),
        "synced_ms": batches.synced_ms if batches else (),
    }
    of_device = {"device_ms": record.device_ms, "reference_ms": reference.ms if reference else ()}
    wrong = [wrong_times(name, times, SHORTEST_MS) for name, times in of_host.items()]
    wrong += [wrong_times(name, times, 0.0) for name, times in of_device.items()]  # a driver's timer may stand still
    return next(filter(None, wrong), "")


def wrong_times(name: str, times: Sequence[float], shortest_ms: float) -> str:
    """Return why these cannot be samples; empty if they can."""
    if len(times) > MOST_SAMPLES:
        return f"{name} has {len(times)} samples, and no run takes more than {MOST_SAMPLES}"
    odd = next((time for time in times if not shortest_ms <= time <= LONGEST_MS), None)
    return "" if odd is None else f"{name} has {odd:g} ms, which is no time"
