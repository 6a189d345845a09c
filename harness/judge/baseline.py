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
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from harness.base.outcome import Outcome
from harness.judge.checked_file import CheckedFile, round_digits
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

SERIES_AT_ONCE = 1024


class BlessedSession(Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The samples of one session, in ms."""

    started_at: str
    wall_ms: Annotated[list[float], Meta(min_length=1)]
    reference: str = ""
    """Which reference kernel was timed in it (`harness.measure.probes.reference`)."""
    reference_ms: list[float] = []
    slowed_ms: list[float] = []
    clock_histogram: dict[str, float] = {}
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


class Baseline(CheckedFile, frozen=True, kw_only=True):
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
    """Settings of its sessions."""
    network: str = ""
    """Hash of the model's file, and `truth` the key of the oracle's answers; empty where they are not known."""
    truth: str = ""
    unchecked: str = ""
    """Why no judge outside TVM could give the right answer; empty where one could."""
    sessions: list[BlessedSession]

    @property
    def side(self) -> Side:
        """The baseline as one side of a comparison."""
        sessions = self.sessions
        return Side(
            key=SeriesKey(intern(self.identity_key), intern(self.case)),
            outcome=Outcome.OK,
            sessions=tuple([as_numbers(session.wall_ms) for session in sessions]),
            started=tuple([session.started_at for session in sessions]),
            artifact=self.artifact,
            quirks=self.quirks,
            tvm=self.tvm,
            runtime=sessions[-1].runtime if sessions else "",
            settings=self.settings,
            emulated=self.emulated,
            probes=tuple(
                [ReferenceSamples.of(s.reference, s.reference_ms, s.slowed_ms) for s in sessions if s.reference]
            ),
            clocks=tuple([session.clock_histogram for session in sessions if session.clock_histogram]),
        )


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
    same = {*Baseline.__struct_fields__} - own.keys() - {"sha256"}
    return Baseline(**{name: getattr(last, name) for name in same}, **own)


def load(folder: Path) -> list[Baseline]:
    """Return all baselines below a folder: of every identity, or of one.

    Raises UsageError for a file that is not good.
    """
    return [Baseline.read(file) for file in files_in(folder)]


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


def sides_in(folder: Path, choose: Callable[[str], bool]) -> dict[SeriesKey, Side]:
    """Return the baselines of the wanted cases below a folder. Raises UsageError for a file that is not good."""
    baselines = (Baseline.read(file) for file in files_in(folder))
    return {side.key: side for side in (each.side for each in baselines if choose(each.case))}
