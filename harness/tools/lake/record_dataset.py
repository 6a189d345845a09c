"""Records of several files, answered as if they were one.

SQLite chooses records by the facts that the index of each file has; then their lines are read where they lie, some
thousands at a time, so that an answer of any size takes little memory. Order is by series, and within one by time:
files of several hosts have no other.

DuckDB answers the same questions where files are Parquet (`harness.tools.lake.parquet`).
"""

from __future__ import annotations

import functools
import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Protocol, TypeVar

from device_runner.failures import RigFailure
from harness.measure.records.index import CaseFilter, RecordIndex, RecordSource
from harness.measure.records.index_database import LINE, SERIES, columns
from harness.measure.records.record import LONGEST_LINE_BYTES, NotARecord, Record, parse
from harness.measure.records.view import SessionView, view_parser

T = TypeVar("T")
ROWS_AT_ONCE = 4096
OPEN_FILES = 64
COLUMNS = ("source", "place", *columns((*SERIES, *LINE)))
"""Of the table or view `record`: the file, where the line begins in it, and the facts of its index."""
SERIES_NAMES = '"case", identity_key, as_shipped'
CHOSEN = 'FROM record WHERE "case" IN (SELECT key FROM json_each($cases)) AND standalone = $standalone'
WANTED_OF_DEVICE = f"{CHOSEN} AND ($device IS NULL OR device = $device)"
BY_TIME = f"ORDER BY {SERIES_NAMES}, started, source, place"
_LAST = f"WINDOW last AS (PARTITION BY {SERIES_NAMES} ORDER BY is_own DESC, started DESC, source DESC, place DESC)"
EVERY = """SELECT source, place FROM record WHERE "case" IN (SELECT key FROM json_each($cases))
    ORDER BY started, source, place"""


class Lines(Protocol):
    """The lines of one file."""

    unit: str
    """What a place is counted in."""

    def read(self, places: Sequence[int]) -> Iterator[bytes]:
        """Yield the lines at these places."""


class JsonLines:
    """The lines of a file of JSON lines, by their beginnings."""

    unit = "byte"

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self, places: Sequence[int]) -> Iterator[bytes]:
        """Yield the lines that begin at these places."""
        with self._file.open("rb") as lines:
            for at in places:
                lines.seek(at)
                yield lines.readline(LONGEST_LINE_BYTES)


@contextmanager
def _reading_lines() -> Iterator[None]:
    """Raise RigFailure for what cannot be read."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise RigFailure(f"cannot read the records: {error}", hint="check the files, and the free space") from error


class RecordDataset(RecordSource):
    """Records of files of JSON lines. To be closed, or used in a `with`.

    It answers as `RecordIndex` does, and raises the same. The last build of a series is that of the session that began
    last by its clock.
    """

    devices_query = "SELECT device FROM record WHERE device <> $none GROUP BY device ORDER BY min(started), device"
    outcomes_query = """SELECT serial, week, outcome, standalone, count(*), count(*) FILTER (WHERE recoveries > 0)
        FROM record WHERE $device IS NULL OR $device IN (device, serial)
        GROUP BY serial, week, outcome, standalone"""
    cases_query = 'SELECT DISTINCT "case" FROM record WHERE "case" IS NOT NULL ORDER BY "case"'
    newest_query = f"""SELECT source, place, {SERIES_NAMES}
        FROM (SELECT *, row_number() OVER last AS nth {CHOSEN} {_LAST}) WHERE nth = 1 ORDER BY {SERIES_NAMES}"""
    newest_builds_query = f"""SELECT source, place, {SERIES_NAMES}
        FROM (SELECT *, first_value(artifact) OVER last AS newest {WANTED_OF_DEVICE} {_LAST})
        WHERE artifact = newest {BY_TIME}"""
    newest_outcomes_query = f"""SELECT "case", outcome, count(*)
        FROM (SELECT *, row_number() OVER last AS nth {CHOSEN} {_LAST})
        WHERE nth = 1 GROUP BY "case", outcome ORDER BY "case", count(*) DESC, outcome"""

    _reading = staticmethod(_reading_lines)

    def __init__(self, files: Sequence[Path], say: Callable[[str], None] = lambda _: None) -> None:
        self._say = say
        self._skipped: list[str] = []
        self._stack = ExitStack()
        try:
            with self._reading():
                self._db = self._open(files)
        except BaseException:
            self._stack.close()
            raise

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _open(self, files: Sequence[Path]) -> Any:
        """Return a connection to a database whose table `record` has the facts of all files."""
        db = self._stack.enter_context(closing(sqlite3.connect("")))  # in memory; on the disk once it is large
        db.execute(f"CREATE TABLE record ({', '.join(COLUMNS)})")
        db.executemany(f"INSERT INTO record VALUES ({', '.join('?' * len(COLUMNS))})", self._facts(files))
        return db

    def _lines(self, source: str) -> Lines:
        return JsonLines(Path(source))

    def _facts(self, files: Sequence[Path]) -> Iterator[tuple[Any, ...]]:
        """Yield the columns of each record of files of JSON lines."""
        for file in files:
            with RecordIndex(file, self._say) as index:
                self._skipped += index.skipped
                yield from ((str(file), *facts) for facts in index.facts())

    @property
    def skipped(self) -> list[str]:
        """Lines that are no records, each with its place and the reason."""
        return self._skipped

    @functools.cached_property
    def cases(self) -> list[str]:
        """The ids of all cases, sorted."""
        return super().cases

    def newest_outcomes(self, choose: CaseFilter) -> dict[str, dict[str, int]]:
        """Count the outcomes of the last record of each series, by case, without reading a record."""
        counts: dict[str, dict[str, int]] = defaultdict(dict)
        for case, outcome, count in self._rows(self.newest_outcomes_query, standalone=False, cases=self._those(choose)):
            counts[case][outcome] = count
        return counts

    def every(self, choose: CaseFilter) -> list[Record]:
        """Return all records of the wanted cases, the oldest first."""
        return [record for record, _ in self._records(EVERY, choose, parse)]

    def newest(self, choose: CaseFilter, *, sustained: bool = False) -> Iterator[Record]:
        """Yield the last record of each series; that of a baseline which was run again only if there is no other."""
        records = self._records(self.newest_query, choose, parse, standalone=sustained)
        return (record for record, _ in records)

    def newest_builds(self, choose: CaseFilter, device: str | None = None) -> Iterator[list[Record]]:
        """Yield all records of the build that a series ran last, series by series; of one device if it is named."""
        return self._builds(parse, choose, device)

    def newest_sessions(self, choose: CaseFilter, device: str | None = None) -> Iterator[list[SessionView]]:
        """Yield as `newest_builds` does, of each record what a verdict wants: they are read several times as fast."""
        return self._builds(view_parser(SessionView), choose, device)

    def _builds(self, form: Callable[[bytes], T], choose: CaseFilter, device: str | None) -> Iterator[list[T]]:
        records = self._records(self.newest_builds_query, choose, form, standalone=False, device=device)
        return ([record for record, _ in build] for _, build in groupby(records, itemgetter(1)))

    def _records(
        self, question: str, choose: CaseFilter, form: Callable[[bytes], T], **about: Any
    ) -> Iterator[tuple[T, Any]]:
        """Yield records in the order of the answer, each with what the answer says beside its place."""
        about["cases"] = self._those(choose)
        with self._reading(), closing(self._db.cursor()) as cursor:
            cursor.execute(question, about)
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                records = self._read([row[:2] for row in rows], form)
                yield from ((record, row[2:]) for record, row in zip(records, rows, strict=True) if record)

    def _those(self, choose: CaseFilter) -> str:
        """Return the wanted cases as a JSON object, whose keys both engines read as texts."""
        return json.dumps(dict.fromkeys(filter(choose, self.cases)))

    def _rows(self, question: str, **about: Any) -> list[Any]:
        with self._reading():
            rows: list[Any] = self._db.execute(question, about).fetchall()
        return rows

    def _read(self, places: Sequence[tuple[str, int]], form: Callable[[bytes], T]) -> list[T | None]:
        """Return the record at each place; None, after a word, for what is no record."""
        numbers: dict[str, list[int]] = defaultdict(list)
        for number, (source, _) in enumerate(places):
            numbers[source].append(number)
        records: list[T | None] = [None] * len(places)
        for source, those in numbers.items():
            lines = self._lines_of(source).read([places[number][1] for number in those])
            for number, line in zip(those, lines, strict=True):
                records[number] = self._parse(source, places[number][1], line, form)
        return records

    def _parse(self, source: str, at: int, line: bytes, form: Callable[[bytes], T]) -> T | None:
        try:
            return form(line)
        except NotARecord as problem:
            self._say(f"skipped {source}, {self._lines_of(source).unit} {at}: {problem}")
            return None

    @functools.cached_property
    def _lines_of(self) -> Callable[[str], Lines]:
        return functools.lru_cache(OPEN_FILES)(self._lines)
