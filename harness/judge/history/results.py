"""asv's results and our records as series of points.

asv keeps numbers, one JSON file for each commit and environment of a machine; our record file of the same name beside
it says why a number is missing. A commit without records (it could not be installed, or asv was run by hand) is read
from asv's file alone. Files come from others: a torn or foreign one is named and left out.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from sys import intern
from typing import Any

import msgspec
from pydantic_core import from_json

from harness.base.case import Case
from harness.base.failures import reason_alone
from harness.base.outcome import STATES, CaseState, Outcome
from harness.base.request import AS_SHIPPED, WITH_WORKAROUNDS
from harness.judge.decisions import DecisionFile, PairedDecision
from harness.judge.decisions import load as load_confirmed
from harness.judge.remarks import PARTLY_VACUOUS, as_opencl
from harness.judge.stats.session import is_time, locations_ms
from harness.measure.records.record import Record, settings_text
from harness.measure.records.view import RecordView, load_views, without_garbage_collection

LATENCY = "latency.Wall.time_inference"
OUTCOME = "outcome.Outcome.track_outcome"
BENCHMARKS_FILE, MACHINE_FILE = "benchmarks.json", "machine.json"
CODES = {
    Outcome.OK: 0,
    Outcome.UNSUPPORTED: 1,
    Outcome.INCONCLUSIVE: 2,
    Outcome.THROTTLED: 3,
    Outcome.DEVICE_LOST: 4,
    Outcome.INFRA_ERROR: 5,
    Outcome.WRONG_RESULT: 10,
    Outcome.RUNTIME_ERROR: 20,
    Outcome.KERNEL_BUILD_ERROR: 21,
    Outcome.DEVICE_CRASH: 22,
    Outcome.HANG: 23,
    Outcome.COMPILE_ERROR: 30,
    Outcome.COMPILER_CRASH: 31,
    Outcome.COMPILE_TIMEOUT: 32,
    Outcome.ORACLE_NOT_FINITE: 40,
    Outcome.OUT_OF_RANGE: 41,
    Outcome.INPUT_REFUSED: 42,
}
"""Outcomes as numbers, which is all that asv keeps. Published results hold them: never renumber, only add."""
_OUTCOMES = {code: outcome for outcome, code in CODES.items()}
Key = tuple[str, str]
"""Case id and state of quirks."""


class Point(msgspec.Struct, frozen=True, gc=False):
    """One case at one commit on one machine. A history has a million, and msgspec makes them four times as fast."""

    commit: str
    date_ms: int
    """Date of the commit, in ms since the epoch."""
    outcome: Outcome | None
    """None if nothing was measured: the commit could not be installed, or its process died."""
    message: str = ""
    wall_ms: float | None = None
    """Location of the samples (`harness.judge.stats.session`); asv's own median where no record was kept."""
    low_ms: float | None = None
    high_ms: float | None = None
    """Bounds of asv's 99 % confidence interval of the median."""
    max_abs_err: float | None = None
    tolerance: float | None = None
    tvm: str = ""
    ffi: str = ""
    harness: str = ""
    quirks: tuple[str, ...] = ()
    artifact: str = ""
    emulated: bool = False
    """Whether the path itself was emulated, so that it has no latency."""
    vacuous: bool = False
    """Whether a right answer proves nothing; the message has the reason."""
    remark: str = ""
    """What a row says beside the state: `as opencl`, `partly vacuous`; the message says why."""
    settings: str = ""
    """Settings of the run, chosen on the device or by the suite: `chunk = 64`."""

    @property
    def state(self) -> CaseState:
        """The state that its outcome means. A commit that cannot be installed is broken."""
        if self.vacuous:
            return CaseState.VACUOUS
        return STATES[self.outcome] if self.outcome else CaseState.BROKEN


@dataclass(frozen=True)
class Series:
    """All points of one case, in one state of quirks, on one machine, in the order of commits."""

    machine: str
    case: Case
    quirks: str
    points: list[Point]

    @property
    def newest(self) -> Point:
        """The last point."""
        return self.points[-1]


@dataclass(frozen=True)
class History:
    """Content of a results folder."""

    machines: dict[str, dict[str, Any]]
    series: list[Series]
    commits: dict[str, list[str]]
    """The commits at which each machine was measured, in order."""
    skipped: list[str] = field(default_factory=list)
    """Files that could not be read, each with the reason."""
    displaced: list[str] = field(default_factory=list)
    """Commits that the repository no longer has, each with what decides its place."""
    confirmed: Sequence[PairedDecision] = ()
    """What was decided in turns, oldest first."""

    def at_newest(self, machine: str) -> list[Series]:
        """Return the series that were measured at the newest commit of a machine."""
        newest = self.commits[machine][-1]
        return [series for series in self.series if series.machine == machine and series.newest.commit == newest]


def outcome_of(code: float) -> Outcome | None:
    """Return the outcome with this code; None for an unknown code."""
    return _OUTCOMES.get(int(code)) if code == int(code) else None


def record_files(folder: Path) -> list[Path]:
    """Return our record files of a machine."""
    return sorted(folder.glob("*.jsonl"))


def newest_records(records: Iterable[Record]) -> list[Record]:
    """Return the newest record of each case and state of quirks."""
    return list({(record.case, record.as_shipped): record for record in records}.values())


@without_garbage_collection()
def load(results: Path, order: Mapping[str, int] | None = None, confirmed: Path | None = None) -> History:
    """Read a results folder, and a file of what was decided in turns. `order` numbers commits, else their dates do."""
    skipped: list[str] = []
    displaced: list[str] = []
    machines: dict[str, dict[str, Any]] = {}
    commits: dict[str, list[str]] = {}
    series: list[Series] = []
    for folder in sorted(path.parent for path in results.glob(f"*/{MACHINE_FILE}")):
        try:
            machines[folder.name] = {**_object(folder / MACHINE_FILE), "machine": folder.name}
        except _ForeignFile as problem:
            skipped.append(str(problem))
            machines[folder.name] = {"machine": folder.name}
        files = [file for file in sorted(folder.glob("*.json")) if file.name != MACHINE_FILE]
        read = [points for file in files if (points := _points_or_none(file, skipped))]
        first = [next(iter(points.values())) for points in read]
        places = _places(first, order or {})
        read = [read[index] for index in sorted(range(len(read)), key=lambda index: places[index])]
        displaced += [
            f"commit {point.commit[:12]} of {folder.name} is not in the repository any more: its date decides its place"
            for point in first
            if order and point.commit not in order
        ]
        points_by_key: dict[Key, list[Point]] = {}
        for points in read:
            for key, point in points.items():
                points_by_key.setdefault(key, []).append(point)
        commits[folder.name] = list(dict.fromkeys(next(iter(points.values())).commit for points in read))
        mine = [
            Series(folder.name, Case.parse(case), quirks, points) for (case, quirks), points in points_by_key.items()
        ]
        series += sorted(mine, key=lambda entry: (entry.case, entry.quirks))
    decisions = load_confirmed(confirmed) if confirmed else DecisionFile([], [])
    return History(machines, series, commits, [*skipped, *decisions.skipped], displaced, decisions.decisions)


def _places(points: Sequence[Point], order: Mapping[str, int]) -> list[tuple[int, int, int]]:
    """Find where each point is sorted. A commit that is not in `order` comes after those of an earlier date."""
    dated = sorted((point.date_ms, order[point.commit]) for point in points if point.commit in order)

    def place(point: Point) -> tuple[int, int, int]:
        if point.commit in order:
            return order[point.commit], 0, point.date_ms
        return max((number for date_ms, number in dated if date_ms <= point.date_ms), default=-1), 1, point.date_ms

    return [place(point) for point in points]


def _points_or_none(file: Path, skipped: list[str]) -> dict[Key, Point] | None:
    try:
        return _points(file, skipped)
    except _ForeignFile as problem:
        skipped.append(str(problem))
        return None


class _ForeignFile(ValueError):
    """A file that is not what its name says."""


def _object(file: Path) -> dict[str, Any]:
    try:
        data = from_json(file.read_bytes())  # six times as fast as json on asv's long rows of samples
    except (OSError, ValueError) as error:
        raise _ForeignFile(f"{file}: {reason_alone(error)}") from None
    if not isinstance(data, dict):
        raise _ForeignFile(f"{file}: not a JSON object")
    return data


def _points(file: Path, skipped: list[str]) -> dict[Key, Point]:
    """Return the points of one results file of asv, with what our records say of them."""
    data = _object(file)
    try:
        commit, date_ms = str(data["commit_hash"]), int(data["date"])
        rows = {name: dict(zip(data["result_columns"], row, strict=False)) for name, row in data["results"].items()}
        outcomes = _by_case(rows.get(OUTCOME), "result")
        latencies = _by_case(rows.get(LATENCY), "result", "stats_ci_99_a", "stats_ci_99_b")
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise _ForeignFile(f"{file}: not a results file of asv ({type(error).__name__}: {error})") from None
    views = load_views(file.with_suffix(".jsonl"))
    skipped.extend(views.skipped)
    located = zip(views.records, locations_ms([record.comparable_ms for record in views.records]), strict=True)
    records = {
        (record.case, state_of_quirks(as_shipped=record.as_shipped)): (record, wall_ms) for record, wall_ms in located
    }
    points = {}
    for key in {**latencies, **outcomes}:
        value, low, high = latencies.get(key, _NOTHING)
        (code,) = outcomes.get(key, (None,))
        if record := records.get(key):
            points[key] = _from_record(commit, date_ms, *record, low, high)
        elif not (_is_nan(value) and _is_nan(code)):  # which asv writes for what it was not asked for
            points[key] = _from_asv(commit, date_ms, value, code, low, high)
    return points


_NOTHING = (None, None, None)


def _by_case(row: Mapping[str, Any] | None, *columns: str) -> dict[Key, tuple[float | None, ...]]:
    """Map case and state of quirks to the columns of a benchmark."""
    if not row:
        return {}
    keys = _keys(tuple(tuple(map(str, values)) for values in row["params"]))
    nothing = [None] * len(keys)
    return dict(zip(keys, zip(*(row.get(name) or nothing for name in columns), strict=True), strict=True))


@functools.lru_cache(16)
def _keys(params: tuple[tuple[str, ...], ...]) -> list[Key]:
    """Return all combinations of a benchmark's parameters, which asv writes as Python literals: the same in most files.

    Raises ValueError for a case that is none.
    """
    cases, states = (tuple(text.strip("'\"") for text in values) for values in params)
    return list(itertools.product([Case.parse(text).id for text in cases], states))


def state_of_quirks(*, as_shipped: bool) -> str:
    """Return the state of quirks that a record was taken in."""
    return AS_SHIPPED if as_shipped else WITH_WORKAROUNDS


def _from_record(
    commit: str, date_ms: int, record: RecordView, wall_ms: float, low: float | None, high: float | None
) -> Point:
    other_path = as_opencl(record.path, record.facts)
    remarks = [*record.vacuous, *record.partly_vacuous, *([other_path.why] if other_path else [])]
    words = [PARTLY_VACUOUS] * bool(record.partly_vacuous) + ([other_path.word] if other_path else [])
    return Point(
        commit,
        date_ms,
        record.outcome,
        record.message or "; ".join(remarks),
        None if math.isnan(wall_ms) else wall_ms,
        _ms(low),
        _ms(high),
        record.max_abs_err,
        record.tolerance,
        intern(record.tvm),  # one text for all points that have it, not a million
        intern(record.ffi),
        intern(record.harness),
        _same(record.quirks),
        intern(record.artifact),
        record.path in record.emulated,
        bool(record.vacuous) and record.outcome is Outcome.OK,
        ", ".join(words),
        intern(settings_text(record.settings)),
    )


@functools.lru_cache(1 << 10)
def _same(quirks: tuple[str, ...]) -> tuple[str, ...]:
    """Map equal tuples to a single object, which saves memory."""
    return quirks


def _from_asv(
    commit: str, date_ms: int, value: float | None, code: float | None, low: float | None, high: float | None
) -> Point:
    outcome = None if code is None or math.isnan(code) else outcome_of(code)
    if outcome is None and value is not None and not math.isnan(value):
        outcome = Outcome.OK
    message = "" if outcome else "nothing was measured: the commit could not be installed, or its process died"
    right = outcome is Outcome.OK and value is not None and is_time(value * 1e3)
    return Point(commit, date_ms, outcome, message, _ms(value) if right else None, _ms(low), _ms(high))


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _ms(seconds: float | None) -> float | None:
    """Return seconds in ms; None for the infinite bound of an interval that asv could not close."""
    return None if seconds is None or not math.isfinite(seconds) else seconds * 1e3
