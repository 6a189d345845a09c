"""A run at one look: for each device a row a model and a column a path, from records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from harness.base.outcome import STATES, CaseState, Outcome
from harness.base.tables import grouped, markdown_table
from harness.judge.remarks import UNSTEADY, as_opencl, remarks, row_remarks
from harness.judge.report import words
from harness.judge.sides import Side, latest_build, side_of
from harness.judge.stats.session import location_ms
from harness.measure.records.record import Record

BASE_PATH = "opencl"
"""Path that the speed-ups of others refer to."""
QUICK = "quick look"
BAD = (CaseState.WRONG, CaseState.BROKEN)


@dataclass(frozen=True)
class Entry:
    """One series: all sessions of its latest build."""

    sessions: tuple[Record, ...]
    record: Record
    """The session that decides the state of the case."""
    wall_ms: float | None
    """The number of all verdicts; None if it is not right, or if its path is emulated."""
    speedup: float | None = None
    """How many times as fast as path opencl is; None if that is not known, or of opencl itself."""
    fastest: bool = False
    """Whether no other path of its model has a lower latency. One look, no verdict."""
    share: float = 0.0
    """Of the latency of the slowest path."""

    @property
    def state(self) -> CaseState:
        """State of the case."""
        outcome = self.record.outcome
        return CaseState.VACUOUS if outcome is Outcome.OK and self.record.vacuous else STATES[outcome]

    @property
    def remarks(self) -> list[str]:
        """Words beside its state: remarks (`harness.judge.remarks`), and how it was run."""
        record = self.record
        how = ["emulated"] * (record.path in record.emulated) + [QUICK] * record.quick
        return how + [remark.word for remark in remarks(record) if remark.word != self.state.value]

    @property
    def kind(self) -> str:
        """What distinguishes it from others of its model and path."""
        shipped = " as shipped" if self.record.as_shipped else ""
        return f"{self.record.precision} {self.record.tuning}{shipped}"

    @property
    def anchor(self) -> str:
        """Id of its section; ids of cases and names of drivers may hold any text."""
        return f"{self.record.identity_key}/{self.record.case}{'/as-shipped' * self.record.as_shipped}"

    @property
    def error_share(self) -> float | None:
        """Its error against the tolerance, as a fraction of it; None if either is not known."""
        error, tolerance = self.record.max_abs_err, self.record.tolerance
        return error / tolerance if error is not None and tolerance else None

    @property
    def _rivals(self) -> tuple[object, ...]:
        record = self.record
        return record.identity_key, record.model, record.precision, record.tuning, record.as_shipped


@dataclass(frozen=True)
class ModelRow:
    """One model on all paths."""

    model: str
    cells: list[list[Entry]]

    @property
    def entries(self) -> list[Entry]:
        """All of them."""
        return [entry for cell in self.cells for entry in cell]


@dataclass(frozen=True)
class Matrix:
    """All cases of one device."""

    paths: list[str]
    rows: list[ModelRow]

    @cached_property
    def entries(self) -> list[Entry]:
        """All of them, in the order of the rows."""
        return [entry for row in self.rows for entry in row.entries]

    @cached_property
    def remark(self) -> str:
        """Remark that most of its cases share; often empty."""
        return row_remarks([entry.record for entry in self.entries])[1]

    def remarks(self, entry: Entry) -> list[str]:
        """Return the remarks on one of its cases, without the shared one."""
        return [word for word in entry.remarks if not (self.remark and word == UNSTEADY)]

    @property
    def kinds(self) -> list[str]:
        """Precisions and tunings that occur."""
        return list(dict.fromkeys(sorted(entry.kind for entry in self.entries)))

    @property
    def name(self) -> str:
        """Name of the device."""
        return self.record.identity.gpu or self.record.identity.kind

    @property
    def record(self) -> Record:
        """The newest record, which describes the device."""
        return max((entry.record for entry in self.entries), key=lambda record: record.started_at)


def entries_of(builds: Iterable[Sequence[Record]]) -> list[Entry]:
    """One for each series."""
    entries = [_entry(group) for group in builds]
    rivals = grouped(entries, lambda entry: entry._rivals)
    return [_against(entry, rivals[entry._rivals]) for entry in entries]


def matrices_of(entries: Iterable[Entry]) -> list[Matrix]:
    """Make a matrix for each device; rows with wrong or broken cases come first."""
    by_device = grouped(entries, lambda entry: entry.record.identity_key)
    return [_matrix(by_device[device]) for device in sorted(by_device)]


def markdown(matrices: Iterable[Matrix]) -> str:
    """Return the matrices for a pull request's comment: state, latency, speed-up and error of each case."""
    parts = []
    for matrix in matrices:
        record = matrix.record
        emulated = f" Not the real thing: {', '.join(record.emulated)}." if record.emulated else ""
        kinds = matrix.kinds
        head = f"**{record.identity_key}**, TVM {record.tvm}, {kinds[0] if len(kinds) == 1 else f'{len(kinds)} kinds'}."
        texts = [["<br>".join(_cell_text(matrix, each) for each in cell) for cell in row.cells] for row in matrix.rows]
        rows = [[row.model, *cells] for row, cells in zip(matrix.rows, texts, strict=True)]
        plain = [[cell.replace("|", "/").replace("`", "'").replace("\n", " ") for cell in row] for row in rows]
        remark = f"\n\n{matrix.remark}" if matrix.remark else ""
        parts.append(f"{head}{emulated}\n\n{markdown_table(plain, ('model', *matrix.paths))}{remark}")
    return "\n\n".join(parts)


def _entry(group: Sequence[Record]) -> Entry:
    side, latest = side_of(group), latest_build(group)
    measured = [session for session in latest if not session.quick]  # a quick look is compared with nothing
    sessions = tuple(measured or latest)
    record = next(session for session in reversed((*latest, *sessions)) if session.outcome is side.outcome)
    return Entry(sessions, record, _latency(side, record))


def _latency(side: Side, record: Record) -> float | None:
    if record.path in record.emulated or record.outcome is not Outcome.OK:
        return None
    over_sessions = side.location_ms
    wall_ms = over_sessions if math.isfinite(over_sessions) else location_ms(record.wall_ms)
    return wall_ms if math.isfinite(wall_ms) else None


def _against(entry: Entry, rivals: Sequence[Entry]) -> Entry:
    if entry.wall_ms is None or entry.record.quick:
        return entry
    timed = {rival.record.path: ms for rival in rivals if (ms := rival.wall_ms) and not rival.record.quick}
    # A build that used nothing of its path is that of opencl: the difference of equal programs is noise.
    alike = {rival.record.path for rival in rivals if as_opencl(rival.record.path, rival.record.facts)}
    own = {path: ms for path, ms in timed.items() if path not in alike}
    base = own.get(BASE_PATH) if entry.record.path not in {BASE_PATH, *alike} else None
    return replace(
        entry,
        speedup=base / entry.wall_ms if base else None,
        fastest=len(own) > 1 and entry.record.path == min(own, key=lambda path: own[path]),
        share=entry.wall_ms / max(timed.values()),
    )


def _matrix(entries: Sequence[Entry]) -> Matrix:
    paths = words.ordered_paths({entry.record.path for entry in entries})
    by_model = grouped(entries, lambda entry: entry.record.model)
    rows = [_row(model, mine, paths) for model, mine in by_model.items()]
    return Matrix(paths, sorted(rows, key=lambda row: (not any(e.state in BAD for e in row.entries), row.model)))


def _row(model: str, entries: Sequence[Entry], paths: Sequence[str]) -> ModelRow:
    cells = [sorted((e for e in entries if e.record.path == path), key=lambda e: e.kind) for path in paths]
    return ModelRow(model, cells)


def _cell_text(matrix: Matrix, entry: Entry) -> str:
    mark = "**" if entry.fastest else ""
    parts = [f"{words.SYMBOLS[entry.state]} {entry.state.value}"]
    parts += [words.latency(entry.wall_ms)] if entry.wall_ms else []
    parts += [word for word in matrix.remarks(entry) if word != QUICK]
    parts += [f"{entry.speedup:.2f} x opencl"] if entry.speedup else []
    error = words.error_text(entry.record.max_abs_err, entry.record.tolerance)
    parts += [f"error {error}"] if entry.state is CaseState.WRONG and error != "-" else []
    return f"{mark}{' '.join(parts)}{mark}{f' {entry.kind}' if len(matrix.kinds) > 1 else ''}"
