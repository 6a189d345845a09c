"""Queries on a file of records, without reading all of it.

A million records are gigabytes, and a command needs some thousands: the last of each series, those of its latest build,
those that settled a case. An index (`harness.measure.records.index_database`) has the place of each in the file. A line
that is not what the index says gives a new index.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, TypeVar

from typing_extensions import Self

from device_runner.failures import RigFailure
from harness.measure.records.index_database import LINE, SERIES, IndexDatabase, columns, facts_of, series_of
from harness.measure.records.record import (
    LONGEST_LINE_BYTES,
    NO_DEVICE,
    NotARecord,
    Record,
    RecordFile,
    ResumeKey,
    parse,
)
from harness.measure.records.view import Counted, SessionView

T = TypeVar("T")
CaseFilter = Callable[[str], bool]
"""Whether a case is wanted, by its id."""

MOST_SKIPPED = 5
"""Number of damaged lines that are named."""
EVERY_SERIES = """SELECT "case", identity_key, as_shipped, standalone, :device AS device FROM series
    WHERE standalone = :standalone AND (:device IS NULL OR device = :device)
    GROUP BY "case", identity_key, as_shipped ORDER BY min(id)"""
LINES = f"SELECT at, {', '.join(columns((*SERIES, *LINE)))} FROM series JOIN line ON series = id"
OF_SERIES = f"""{LINES} WHERE "case" = :case AND identity_key = :identity AND as_shipped = :as_shipped
    AND standalone = :standalone AND (:device IS NULL OR device = :device)"""
NEWEST = f"{OF_SERIES} ORDER BY is_own DESC, at DESC LIMIT 1"
BEGAN_LAST = f"{OF_SERIES} AND is_own ORDER BY started DESC, at DESC LIMIT 1"
NEWEST_BUILD = f"""{OF_SERIES}
    AND (artifact = (SELECT artifact FROM ({NEWEST})) OR at = (SELECT at FROM ({BEGAN_LAST}))) ORDER BY at"""
RECENT = f"{OF_SERIES} ORDER BY at DESC LIMIT :most"
OF_KEY = f"{OF_SERIES} AND artifact = :artifact AND quick = :quick"


class _StaleLine(Exception):
    """A line is not what the index takes it for."""


class RecordSource(ABC):
    """Queries on the records of a place; `RecordIndex` describes each. To be closed, or used in a `with`."""

    devices_query: ClassVar[str]
    """Names that are not `:none`, in the order of first use."""
    outcomes_query: ClassVar[str]
    """The columns of `Counted`; of all devices, or of one by its name or serial."""
    cases_query = 'SELECT DISTINCT "case" FROM series ORDER BY "case"'

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *_: object) -> None: ...

    @property
    @abstractmethod
    def skipped(self) -> list[str]:
        """The lines that are not records, each with its place and the reason."""

    @property
    def devices(self) -> list[str]:
        """Values of `--device`, in the order of first use."""
        return [name for (name,) in self._rows(self.devices_query, none=NO_DEVICE)]

    @property
    def cases(self) -> list[str]:
        """The ids of all cases, sorted."""
        return [case for (case,) in self._rows(self.cases_query)]

    def outcomes(self, device: str | None = None) -> list[Counted]:
        """Return how many records there are of each phone, week and outcome; of one device by its name or serial.

        Taken from the index alone, without reading a record.
        """
        return [Counted(*row) for row in self._rows(self.outcomes_query, device=device)]

    def newest_outcomes(self, choose: CaseFilter) -> Mapping[str, Mapping[str, int]]:
        """Count the last outcomes of series, by case, if there may be too many series to read; else nothing."""
        return {}

    @abstractmethod
    def every(self, choose: CaseFilter) -> list[Record]:
        """Return all records of the wanted cases."""

    @abstractmethod
    def newest(self, choose: CaseFilter, *, sustained: bool = False) -> Iterator[Record]:
        """Yield the last record of each series; that of a baseline which was run again only if there is no other."""

    @abstractmethod
    def newest_builds(self, choose: CaseFilter, device: str | None = None) -> Iterator[list[Record]]:
        """Yield all records of the build that each series ran last; of one device if it is named."""

    def newest_sessions(
        self, choose: CaseFilter, device: str | None = None
    ) -> Iterator[list[Record]] | Iterator[list[SessionView]]:
        """Yield the fields of these that a verdict needs, if that is faster; else what `newest_builds` does."""
        return self.newest_builds(choose, device)

    @abstractmethod
    def _rows(self, question: str, **about: Any) -> list[Any]:
        """Return the rows that answer a question of SQL."""


class RecordIndex(RecordSource):
    """What a file of records holds: nothing if there is none. To be closed, or used in a `with`.

    `say` hears how far the making of an index has come. Opening raises UsageError for what is no file, RigFailure for
    one that cannot be read, and so does every question. A series is a case on an identity, as shipped or not; series
    come in the order in which their first records lie in the file, and the records of each likewise. A
    record that is `standalone` makes a series of its own, which only `every` and `newest(sustained=True)` return.
    """

    devices_query = "SELECT device FROM series WHERE device <> :none GROUP BY device ORDER BY min(id)"
    outcomes_query = """SELECT serial, week, outcome, standalone, count(*), sum(recoveries > 0)
        FROM series JOIN line ON series = id WHERE :device IS NULL OR :device IN (device, serial)
        GROUP BY serial, week, outcome, standalone"""

    def __init__(self, path: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self.path = path
        RecordFile(path).require_file()
        with self._reading():
            self._file = _open_file(path)
            self._index = IndexDatabase(path, self._file, say)
            self._db = self._index.open()

    def __exit__(self, *_: object) -> None:
        self._db.close()
        self._file.close()

    @property
    def skipped(self) -> list[str]:
        """The lines that are not records, each with its number and the reason."""
        return [f"{self.path}:{why}" for (why,) in self._rows("SELECT why FROM foreign_line ORDER BY at")]

    def facts(self) -> list[tuple[Any, ...]]:
        """Return where each record begins, and what records are chosen by: a series' columns, and a line's."""
        return self._rows(f"{LINES} ORDER BY at")

    def every(self, choose: CaseFilter) -> list[Record]:
        """Return all records of the wanted cases, in the order of the file."""

        def read() -> list[Record]:
            self._db.create_function("wanted", 1, choose)
            return [self._record(*row) for row in self._db.execute(f'{LINES} WHERE wanted("case") ORDER BY at')]

        return self._twice(read)

    def newest(self, choose: CaseFilter, *, sustained: bool = False) -> Iterator[Record]:
        """Yield the last record of each series; that of a baseline which was run again only if there is no other."""
        for series in self._series(choose, None, sustained):
            yield from self._ask(NEWEST, **series)

    def newest_builds(self, choose: CaseFilter, device: str | None = None) -> Iterator[list[Record]]:
        """Yield all records of the build that each series ran last; of one device if it is named.

        With them comes the one that began last by its clock, should that be of another build: then it is not certain
        which build is the last (`harness.judge.sides`).
        """
        return (self._ask(NEWEST_BUILD, **series) for series in self._series(choose, device))

    def recent(self, choose: CaseFilter, most: int) -> Iterator[Record]:
        """Yield the last records of each series, at most so many, the newest first."""
        for series in self._series(choose, None):
            yield from self._ask(RECENT, **series, most=most)

    def of_key(self, key: ResumeKey) -> list[Record]:
        """Return all records with a resume key."""
        return self._ask(f"{OF_KEY} ORDER BY at", **key._asdict(), device=None, standalone=False)

    def settled(self, key: ResumeKey) -> Record | None:
        """Return the last record with a resume key that settles its case; None if there is none."""
        of_key = {**key._asdict(), "device": None, "standalone": False}
        records = self._ask(f"{OF_KEY} AND conclusive ORDER BY at DESC LIMIT 1", **of_key)
        return records[0] if records else None

    def _series(self, choose: CaseFilter, device: str | None, sustained: bool = False) -> list[dict[str, Any]]:
        names = ("case", "identity", "as_shipped", "standalone", "device")
        rows = self._rows(EVERY_SERIES, device=device, standalone=sustained)
        return [dict(zip(names, row, strict=True)) for row in rows if choose(row[0])]

    def _ask(self, question: str, **about: Any) -> list[Record]:
        return self._twice(lambda: [self._record(*row) for row in self._db.execute(question, about)])

    def _rows(self, question: str, **about: Any) -> list[Any]:
        return self._twice(lambda: self._db.execute(question, about).fetchall())

    def _twice(self, read: Callable[[], T]) -> T:
        """Return what is read, if need be by an index that was made just now."""
        with self._reading():
            try:
                return read()
            except (_StaleLine, sqlite3.DatabaseError):
                self._db.close()
                self._db = self._index.open_anew()
            try:
                return read()
            except _StaleLine:
                raise RigFailure(f"{self.path} was edited while it was read", hint="run the command again") from None

    def _record(self, at: int, *facts: Any) -> Record:
        """Return the record that begins there. Raises _StaleLine unless these are its facts."""
        self._file.seek(at)
        try:
            record = parse(self._file.readline(LONGEST_LINE_BYTES))
        except NotARecord:
            raise _StaleLine from None
        if (*series_of(record), *facts_of(record)) != facts:
            raise _StaleLine
        return record

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RigFailure(f"cannot read {self.path}: {error.strerror}") from error


def _open_file(path: Path) -> BinaryIO:
    """Return the file, or an empty one if there is none."""
    return path.open("rb") if path.exists() else tempfile.TemporaryFile()


def skipped_lines(skipped: Sequence[str]) -> list[str]:
    """Describe the lines of files that are not records: the first of them, and how many more there are."""
    more = len(skipped) - MOST_SKIPPED
    return [f"skipped {line}" for line in skipped[:MOST_SKIPPED]] + ([f"skipped {more} more lines"] if more > 0 else [])
