"""asv's results and our records as series of points.

asv keeps numbers, one JSON file for each commit and environment of a machine; our record file of the same name beside
it says why a number is missing. A commit without records (it could not be installed, or asv was run by hand) is read
from asv's file alone. Files come from others: a torn or foreign one is named and left out.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.cases.case import Case
from harness.history.codes import outcome_of
from harness.history.measured import AS_SHIPPED, WITH_WORKAROUNDS
from harness.judge.remarks import as_opencl
from harness.judge.stats.session import location_ms
from harness.run.outcome import Outcome
from harness.run.record import Record, RecordFile

LATENCY = "latency.Wall.time_inference"
OUTCOME = "outcome.Outcome.track_outcome"
BENCHMARKS_FILE, MACHINE_FILE = "benchmarks.json", "machine.json"


@dataclass(frozen=True)
class Point:
    """One case at one commit on one machine."""

    commit: str
    date_ms: int
    """Of the commit, since the epoch."""
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
    """Whether being right proves nothing; the message says why."""
    remark: str = ""
    """What a row says beside the state: `as opencl` where nothing went the way of its path; the message says why."""


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
    """What a results folder holds."""

    machines: dict[str, dict[str, Any]]
    series: list[Series]
    commits: dict[str, list[str]]
    """By machine, in order: all that it was measured at."""
    skipped: list[str] = field(default_factory=list)
    """Files that could not be read, each with the reason."""


def record_files(folder: Path) -> list[Path]:
    """Our files of a machine."""
    return sorted(folder.glob("*.jsonl"))


def latest(records: Iterable[Record]) -> list[Record]:
    """The newest record of each case and state of quirks."""
    return list({(record.case, record.as_shipped): record for record in records}.values())


def load(results: Path, order: Mapping[str, int] | None = None) -> History:
    """Read a results folder. `order` numbers commits; without it their dates order them."""
    skipped: list[str] = []
    machines: dict[str, dict[str, Any]] = {}
    found: dict[tuple[str, Case, str], list[Point]] = {}
    for folder in sorted(path.parent for path in results.glob(f"*/{MACHINE_FILE}")):
        try:
            machines[folder.name] = {**_object(folder / MACHINE_FILE), "machine": folder.name}
        except _Foreign as problem:
            skipped.append(str(problem))
            machines[folder.name] = {"machine": folder.name}
        for file in sorted(folder.glob("*.json")):
            if file.name == MACHINE_FILE:
                continue
            try:
                for case, quirks, point in _points(file, skipped):
                    found.setdefault((folder.name, case, quirks), []).append(point)
            except _Foreign as problem:
                skipped.append(str(problem))

    def place(point: Point) -> tuple[int, int]:
        return (order or {}).get(point.commit, -1), point.date_ms

    series = [Series(*key, sorted(points, key=place)) for key, points in sorted(found.items())]
    commits = {
        name: list(dict.fromkeys(p.commit for p in sorted(_all_points(series, name), key=place))) for name in machines
    }
    return History(machines, series, commits, skipped)


class _Foreign(ValueError):
    """A file that is not what its name says."""


def _all_points(series: Iterable[Series], machine: str) -> Iterator[Point]:
    return itertools.chain.from_iterable(one.points for one in series if one.machine == machine)


def _object(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_bytes())
    except (OSError, ValueError) as error:
        raise _Foreign(f"{file}: {error}") from None
    if not isinstance(data, dict):
        raise _Foreign(f"{file}: not a JSON object")
    return data


def _points(file: Path, skipped: list[str]) -> Iterator[tuple[Case, str, Point]]:
    """The points of one results file of asv, with what our records say of them."""
    data = _object(file)
    try:
        commit, date_ms = str(data["commit_hash"]), int(data["date"])
        rows = {name: dict(zip(data["result_columns"], row, strict=False)) for name, row in data["results"].items()}
        outcomes, latencies = _by_case(rows.get(OUTCOME), "result"), _by_case(rows.get(LATENCY), "result")
        low, high = _by_case(rows.get(LATENCY), "stats_ci_99_a"), _by_case(rows.get(LATENCY), "stats_ci_99_b")
        keys = [(Case.parse(case), quirks) for case, quirks in {**latencies, **outcomes}]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _Foreign(f"{file}: not a results file of asv ({type(error).__name__}: {error})") from None
    kept = RecordFile(file.with_suffix(".jsonl")).load()
    skipped.extend(kept.skipped)
    records = {(record.case, state_of_quirks(record)): record for record in kept.records}
    for case, quirks in keys:
        key = case.id, quirks
        value, code = latencies.get(key), outcomes.get(key)
        if key in records:
            yield case, quirks, _from_record(commit, date_ms, records[key], low.get(key), high.get(key))
        elif not _unselected(value, code):
            yield case, quirks, _from_asv(commit, date_ms, value, code, low.get(key), high.get(key))


def _by_case(row: Mapping[str, Any] | None, column: str) -> dict[tuple[str, str], float | None]:
    """Values of a benchmark by case and state of quirks. asv writes parameters as Python literals."""
    if not row:
        return {}
    names = [[str(text).strip("'\"") for text in values] for values in row["params"]]
    keys = [(case, quirks) for case, quirks in itertools.product(*names)]
    values = row.get(column) or [None] * len(keys)
    return dict(zip(keys, values, strict=True))


def state_of_quirks(record: Record) -> str:
    """Which of the two states of quirks a record was taken in."""
    return AS_SHIPPED if record.as_shipped else WITH_WORKAROUNDS


def _from_record(commit: str, date_ms: int, record: Record, low: float | None, high: float | None) -> Point:
    other_path = as_opencl(record)
    return Point(
        commit=commit,
        date_ms=date_ms,
        outcome=record.outcome,
        message=record.message or "; ".join([*record.vacuous, *([other_path.why] if other_path else [])]),
        remark=other_path.word if other_path else "",
        vacuous=record.outcome is Outcome.OK and bool(record.vacuous),
        wall_ms=location_ms(record.comparable_ms) if record.comparable_ms else None,
        low_ms=_ms(low),
        high_ms=_ms(high),
        max_abs_err=record.max_abs_err,
        tolerance=record.tolerance,
        tvm=record.tvm,
        ffi=record.ffi,
        harness=record.harness,
        quirks=record.quirks,
        artifact=record.artifact,
        emulated=record.path in record.emulated,
    )


def _from_asv(
    commit: str, date_ms: int, value: float | None, code: float | None, low: float | None, high: float | None
) -> Point:
    outcome = None if code is None or math.isnan(code) else outcome_of(code)
    if outcome is None and value is not None and not math.isnan(value):
        outcome = Outcome.OK
    message = "" if outcome else "nothing was measured: the commit could not be installed, or its process died"
    right = outcome is Outcome.OK and value is not None and not math.isnan(value)
    return Point(commit, date_ms, outcome, message, _ms(value) if right else None, _ms(low), _ms(high))


def _ms(seconds: float | None) -> float | None:
    """asv writes an unbounded confidence interval as an infinite one."""
    return None if seconds is None or not math.isfinite(seconds) else seconds * 1e3


def _unselected(*values: float | None) -> bool:
    """asv writes NaN for parameters that were not asked for."""
    return all(isinstance(value, float) and math.isnan(value) for value in values)
