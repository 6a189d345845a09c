"""Records of many files, JSON lines and Parquet, answered as if they were one.

DuckDB chooses records by their facts; then their lines are read where they lie, some thousands at a time, so that an
answer of any size takes little memory. Order is by series, and within one by time: files of several hosts
have no other.
"""

from __future__ import annotations

import functools
import glob
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from device_runner.files import scratch_folder
from harness.base.process import cores
from harness.measure.records.health import Counted
from harness.measure.records.index import RecordIndex, Wanted
from harness.measure.records.record import LONGEST_LINE_BYTES, NO_DEVICE, NotARecord, Record, parse
from harness.measure.records.view import SessionView, view_parser
from harness.tools.lake.parquet import FACTS, SUFFIX, ParquetLines, needing_packages, table_of

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T")
MEMORY = "400MB"
"""What DuckDB may use; beyond, it sorts on the disk."""
ROWS_AT_ONCE = 4096
OPEN_FILES = 64
_SERIES = '"case", identity_key, as_shipped'
_LAST = "(is_own, started, source, place)"
_WANTED = 'FROM record WHERE "case" IN (SELECT unnest($cases)) AND standalone = $standalone'
_ORDER = f"ORDER BY {_SERIES}, started, source, place"
NEWEST = f"""SELECT last.source, last.place, {_SERIES} FROM (
    SELECT {_SERIES}, arg_max({{'source': source, 'place': place}}, {_LAST}) AS last {_WANTED} GROUP BY {_SERIES})
    ORDER BY {_SERIES}"""
NEWEST_BUILDS = f"""WITH asked AS (SELECT * {_WANTED} AND ($device IS NULL OR device = $device)),
    newest AS (SELECT {_SERIES}, arg_max(artifact, {_LAST}) AS artifact FROM asked GROUP BY {_SERIES})
    SELECT source, place, {_SERIES} FROM asked SEMI JOIN newest USING ({_SERIES}, artifact) {_ORDER}"""
NEWEST_OUTCOMES = f"""SELECT "case", outcome, count(*)
    FROM (SELECT {_SERIES}, arg_max(outcome, (is_own, started)) AS outcome {_WANTED} GROUP BY {_SERIES})
    GROUP BY "case", outcome ORDER BY "case", count(*) DESC, outcome"""
EVERY = 'SELECT source, place FROM record WHERE "case" IN (SELECT unnest($cases)) ORDER BY started, source, place'
OUTCOMES = """SELECT serial, week, outcome, standalone, count(*), count(*) FILTER (recoveries > 0) FROM record
    WHERE $device IS NULL OR $device IN (device, serial) GROUP BY serial, week, outcome, standalone"""
DEVICES = "SELECT device FROM record WHERE device <> $none GROUP BY device ORDER BY min(started), device"
CASES = 'SELECT DISTINCT "case" FROM record WHERE "case" IS NOT NULL ORDER BY "case"'


class RecordDataset:
    """What files of records hold. To be closed, or used in a `with`.

    It answers as `RecordIndex` does, and raises the same; SetupMissing without DuckDB and pyarrow. The last build of a
    series is that of the session that began last by its clock.
    """

    def __init__(self, files: Sequence[Path], say: Callable[[str], None] = lambda _: None) -> None:
        self._say = say
        self.skipped: list[str] = []
        """Lines that are no records, each with its place and the reason."""
        self._stack = ExitStack()
        try:
            with needing_packages():
                facts = [row for file in files if file.suffix != SUFFIX for row in self._facts_of(file)]
                self._open(facts, [glob.escape(str(file)) for file in files if file.suffix == SUFFIX])
        except BaseException:
            self._stack.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _facts_of(self, file: Path) -> list[tuple[Any, ...]]:
        with RecordIndex(file, self._say) as index:
            self.skipped += index.skipped
            return [(str(file), *facts) for facts in index.facts()]

    def _open(self, facts: Sequence[Any], parquet: Sequence[str]) -> None:
        """Make the view `record` of the facts of all files."""
        import duckdb

        config = {
            "memory_limit": MEMORY,
            "threads": cores(),
            "temp_directory": str(self._stack.enter_context(scratch_folder())),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        self._db = self._stack.enter_context(duckdb.connect(config=config))
        self._db.execute("SET parquet_metadata_cache = true")  # or each question reads the end of each file again
        self._db.register("facts", table_of(("source", "place", *FACTS), facts))
        self._db.execute("CREATE TABLE lines AS SELECT * FROM facts")
        parts = ["SELECT * FROM lines"]
        if parquet:
            listed = ", ".join(f"'{name.replace(chr(39), chr(39) * 2)}'" for name in parquet)
            columns = "filename AS source, file_row_number AS place, * EXCLUDE (filename, file_row_number)"
            options = "filename = true, file_row_number = true, union_by_name = true, hive_partitioning = false"
            parts.append(f"SELECT {columns} FROM read_parquet([{listed}], {options})")
        self._db.execute(f"CREATE VIEW record AS {' UNION ALL BY NAME '.join(parts)}")

    @property
    def devices(self) -> list[str]:
        """What was typed after `--device`, in the order of first use."""
        return [name for (name,) in self._rows(DEVICES, none=NO_DEVICE)]

    @functools.cached_property
    def cases(self) -> list[str]:
        """The ids of all cases, sorted."""
        return [case for (case,) in self._rows(CASES)]

    def outcomes(self, device: str | None = None) -> list[Counted]:
        """Return how many records there are of each phone, week and outcome; of one device by its name or serial."""
        return [Counted(*row) for row in self._rows(OUTCOMES, device=device)]

    def newest_outcomes(self, wanted: Wanted) -> dict[str, dict[str, int]]:
        """Count the outcomes of the last record of each series, by case, without reading a record."""
        found: dict[str, dict[str, int]] = defaultdict(dict)
        for case, outcome, count in self._rows(NEWEST_OUTCOMES, standalone=False, cases=self._those(wanted)):
            found[case][outcome] = count
        return found

    def every(self, wanted: Wanted) -> list[Record]:
        """Return all records of the wanted cases, the oldest first."""
        return [record for record, _ in self._records(EVERY, wanted, parse)]

    def newest(self, wanted: Wanted, *, sustained: bool = False) -> Iterator[Record]:
        """Yield the last record of each series; that of a baseline which was run again only if there is no other."""
        return (record for record, _ in self._records(NEWEST, wanted, parse, standalone=sustained))

    def newest_builds(self, wanted: Wanted, device: str | None = None) -> Iterator[list[Record]]:
        """Yield all records of the build that a series ran last, series by series; of one device if it is named."""
        return self._builds(parse, wanted, device)

    def newest_sessions(self, wanted: Wanted, device: str | None = None) -> Iterator[list[SessionView]]:
        """Yield the same, of each record what a verdict wants, which is read several times as fast."""
        return self._builds(view_parser(SessionView), wanted, device)

    def _builds(self, form: Callable[[bytes], T], wanted: Wanted, device: str | None) -> Iterator[list[T]]:
        found = self._records(NEWEST_BUILDS, wanted, form, standalone=False, device=device)
        return ([record for record, _ in build] for _, build in groupby(found, itemgetter(1)))

    def _records(
        self, question: str, wanted: Wanted, form: Callable[[bytes], T], **about: Any
    ) -> Iterator[tuple[T, Any]]:
        """Yield records in the order of the answer, each with what the answer says beside its place."""
        about["cases"] = self._those(wanted)
        with needing_packages(), self._db.cursor() as cursor:
            cursor.execute(question, about)
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                found = self._read([row[:2] for row in rows], form)
                yield from ((record, row[2:]) for record, row in zip(found, rows, strict=True) if record)

    def _those(self, wanted: Wanted) -> list[str]:
        return [case for case in self.cases if wanted(case)]

    def _rows(self, question: str, **about: Any) -> list[Any]:
        with needing_packages():
            rows: list[Any] = self._db.execute(question, about).fetchall()
        return rows

    def _read(self, places: Sequence[tuple[str, int]], form: Callable[[bytes], T]) -> list[T | None]:
        """Return the record at each place; None, after a word, for what is no record."""
        wanted: dict[str, list[int]] = defaultdict(list)
        for source, place in places:
            wanted[source].append(place)
        found = {
            (source, at): self._parse(source, at, line, form)
            for source, those in wanted.items()
            for at, line in zip(those, self._lines_of(source).read(those), strict=True)
        }
        return [found[place] for place in places]

    def _parse(self, source: str, at: int, line: bytes, form: Callable[[bytes], T]) -> T | None:
        try:
            return form(line)
        except NotARecord as problem:
            self._say(f"skipped {source}, {'row' if source.endswith(SUFFIX) else 'byte'} {at}: {problem}")
            return None

    @functools.cached_property
    def _lines_of(self) -> Callable[[str], ParquetLines | JsonLines]:
        def opened(source: str) -> ParquetLines | JsonLines:
            return ParquetLines(Path(source)) if source.endswith(SUFFIX) else JsonLines(Path(source))

        return functools.lru_cache(OPEN_FILES)(opened)


class JsonLines:
    """The lines of a file of JSON lines, by their beginnings in bytes."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self, places: Sequence[int]) -> Iterator[bytes]:
        """Yield the lines that begin at these places."""
        with self._file.open("rb") as lines:
            for at in places:
                lines.seek(at)
                yield lines.readline(LONGEST_LINE_BYTES)
