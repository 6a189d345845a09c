"""Baselines: what a case was when somebody called it good, one reviewable file for each case and identity.

    baselines/<identity>/<case>.json

Only right answers are blessed, and only latencies that a phone or this host really had, unless a gate on an emulation
asks for its times. A checksum tells a file that was edited by hand from one that was blessed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from sys import intern
from typing import Any, Literal

import msgspec
from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer
from pydantic import Field as field

from harness.base.case import require_case_id
from harness.base.outcome import Outcome
from harness.judge.baseline_view import BaselineView, read_view
from harness.judge.checked_file import LARGEST_BYTES, CheckedFile, round_digits
from harness.judge.sides import (
    QUICK_LOOK,
    SeriesKey,
    Session,
    Side,
    histogram_of,
    latest_build,
    side_of,
    summarise_sides,
)
from harness.judge.stats.session import ReferenceSamples, as_numbers, check_each, is_time

READ_BYTES = 1 << 16
"""Read of a file at first: all of it, unless it has hundreds of sessions."""
SERIES_AT_ONCE = 1024


class BlessedSession(BaseModel):
    """The samples of one session, in ms."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    started_at: str
    wall_ms: list[float] = field(min_length=1)
    reference: str = ""
    """Which reference kernel was timed in it (`harness.measure.probes.reference`)."""
    reference_ms: list[float] = field(default_factory=list)
    slowed_ms: list[float] = field(default_factory=list)
    clock_histogram: dict[str, float] = field(default_factory=dict)
    """Share of the GPU's time at each of its clocks, by MHz."""
    runtime: str = ""
    """Hash of the runtime that was brought to the device for it."""

    @classmethod
    def of(cls, record: Session) -> BlessedSession:
        """Return the fields of a record that a baseline keeps."""
        reference = record.reference
        if reference and not all(map(is_time, (*reference.ms, *reference.slowed_ms))):
            reference = None
        return cls(
            started_at=record.started_at,
            wall_ms=[*map(round_digits, record.wall_ms)],
            reference=reference.kernel if reference else "",
            reference_ms=[*map(round_digits, reference.ms)] if reference else [],
            slowed_ms=[*map(round_digits, reference.slowed_ms)] if reference else [],
            clock_histogram=dict(histogram_of(record)),
            runtime=record.identity.runtime,
        )

    @model_serializer(mode="wrap")
    def _only_what_is_known(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialise(self).items() if value or name in ("started_at", "wall_ms")}


class Baseline(CheckedFile):
    """A case that was right, and how fast it was in each session. Times in ms."""

    what = "baseline"
    mended_by = "take it from version control again, or bless anew"

    kind: Literal["latency", "correctness"]
    """`correctness` if there is no latency to keep, because the device was emulated."""
    emulated: tuple[str, ...]
    """What was not the real thing. It is part of the identity, so no phone is ever compared with it."""
    artifact: str
    tvm: str
    """The release that compiled it."""
    ffi: str
    quirks: tuple[str, ...]
    max_abs_err: float | None
    tolerance: float | None
    facts: dict[str, int]
    settings: dict[str, int] = field(default_factory=dict)
    """Settings of its sessions; left out of the file without any."""
    network: str = ""
    """Hash of the model's file, and `truth` the key of the oracle's answers; left out where they are not known."""
    truth: str = ""
    unchecked: str = ""
    """Why no judge outside TVM could give the right answer; left out of the file where one could."""
    sessions: list[BlessedSession]

    @model_serializer(mode="wrap")
    def _without_what_is_checked(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {
            name: value
            for name, value in serialise(self).items()
            if value or name not in ("unchecked", "network", "truth", "settings")
        }

    @property
    def side(self) -> Side:
        """The baseline as one side of a comparison."""
        return side_of_baseline(self)


@dataclass(frozen=True)
class Blessing:
    """Result of blessing one case: a baseline, or why there is none."""

    key: SeriesKey
    baseline: Baseline | None
    notes: tuple[str, ...]
    """Why it is refused, or what is left out."""
    outcome: Outcome
    """`ok` if it was blessed, otherwise the outcome that prevented it."""


def bless_builds(builds: Iterable[Sequence[Session]], *, emulated: bool = False) -> Iterator[Blessing]:
    """Judge whether the latest build of each series is fit to be a baseline, by all its records.

    With `emulated` the latencies of emulated devices are kept, too: good for nothing but that very emulation. The
    samples of many series are checked at once, in a fraction of the time.
    """
    left = iter(builds)
    while groups := [latest_build(series) for series in islice(left, SERIES_AT_ONCE)]:
        sides = [side_of(group) for group in groups]
        summarise_sides(sides)
        yield from (_bless(group, side, emulated) for group, side in zip(groups, sides, strict=True))


def _bless(group: Sequence[Session], side: Side, emulated: bool) -> Blessing:
    key = side.key
    if side.outcome is not Outcome.OK:
        return Blessing(key, None, (f"{side.outcome.value}: {side.message}",), side.outcome)
    right = [record for record in group if record.outcome is Outcome.OK]
    vacuity = tuple(filter(None, (side.vacuity, right[-1].unchecked and f"unchecked: {right[-1].unchecked}")))
    if (side.emulated and not emulated) or not side.sessions:
        why = f"emulated ({', '.join(side.emulated)})" if side.emulated and not emulated else side.untimed
        note = f"{why or 'it was not timed'}: no latency is kept"
        return Blessing(key, _baseline(right, []), (*vacuity, note), Outcome.OK)
    timed = [record for record in right if record.comparable_ms]
    fit = timed
    if side.summary.refused:
        fit = [record for record, quality in zip(timed, check_each(side.sessions), strict=True) if quality.ok]
    if not fit:
        return Blessing(key, None, side.summary.refused, Outcome.THROTTLED)
    notes = [f"left out {reason}" for reason in side.summary.refused] if len(fit) < len(timed) else []
    notes += [f"left out: {QUICK_LOOK}"] if any(record.quick for record in right) else []
    if side.emulated:
        notes.append(f"emulated ({', '.join(side.emulated)}): these times say nothing about a phone")
    return Blessing(key, _baseline(right, fit), (*vacuity, *notes), Outcome.OK)


def _baseline(right: Sequence[Session], timed: Sequence[Session]) -> Baseline:
    """Return what is kept of the sessions that were right: of the last one, and the times of those that have some."""
    last = right[-1]
    own: dict[str, Any] = {
        "kind": "latency" if timed else "correctness",
        "tvm": last.compilers.tvm,
        "ffi": last.compilers.ffi,
        "sessions": [BlessedSession.of(record) for record in timed],
    }
    same = Baseline.model_fields.keys() - own.keys() - {"schema_version"}
    return Baseline(**{name: getattr(last, name) for name in same}, **own)


def load(folder: Path) -> list[Baseline]:
    """Return all baselines below a folder: of every identity, or of one.

    Raises UsageError for a file that is not good.
    """
    return [Baseline.read(Path(file)) for file in files_in(folder)]


def files_in(folder: Path) -> list[str]:
    """Return the files of all baselines below a folder, as text: 100,000 paths take half a second more."""
    return [file for place in _inside(folder) for file in (place, *_inside(place)) if file.endswith(".json")]


def _inside(folder: Path | str) -> list[str]:
    """Return what is in a folder, sorted; nothing if it is none, or may not be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted([entry.path for entry in entries])
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def side_of_baseline(blessed: Baseline | BaselineView) -> Side:
    """Return a baseline, or as much of it as a side is made of, as one side of a comparison."""
    sessions = blessed.sessions
    return Side(
        key=SeriesKey(intern(blessed.identity_key), intern(blessed.case)),
        outcome=Outcome.OK,
        sessions=tuple([as_numbers(session.wall_ms) for session in sessions]),
        started=tuple([session.started_at for session in sessions]),
        artifact=blessed.artifact,
        quirks=blessed.quirks,
        tvm=blessed.tvm,
        runtime=sessions[-1].runtime if sessions else "",
        settings=blessed.settings,
        emulated=blessed.emulated,
        probes=tuple([ReferenceSamples.of(s.reference, s.reference_ms, s.slowed_ms) for s in sessions if s.reference]),
        clocks=tuple([session.clock_histogram for session in sessions if session.clock_histogram]),
    )


def sides_in(folder: Path, choose: Callable[[str], bool]) -> dict[SeriesKey, Side]:
    """Return the baselines of the wanted cases below a folder. Raises UsageError for a file that is not good."""
    return {side.key: side for side in map(read_side, files_in(folder)) if choose(side.key.case)}


def read_side(file: str) -> Side:
    """Return the side that a baseline is. What is not as `bless` writes it is left to `Baseline.read`, which raises."""
    try:
        view = read_view(_text_of(file))
    except (OSError, msgspec.MsgspecError):
        return Baseline.read(Path(file)).side
    if not view.is_intact or file.split("/")[-2:] != [view.identity_key, f"{view.case}.json"]:
        return Baseline.read(Path(file)).side
    require_case_id(view.case)
    return side_of_baseline(view)


def _text_of(file: str) -> bytes:
    """Return the beginning of a file: not all of one that is larger than any baseline."""
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = os.read(descriptor, READ_BYTES)
        return text if len(text) < READ_BYTES else text + os.read(descriptor, LARGEST_BYTES)
    finally:
        os.close(descriptor)
