"""Records in Parquet: a row has the record's line, and in columns of their own what commands choose records by.

The line is the truth. Columns are made of it when a row is written, so that a file of an older version may lack some;
its lines are read all the same. Rows are sorted by case and device, and row groups are small: a
question about one case reads little of a file. DuckDB reads the columns that it needs.
"""

from __future__ import annotations

import glob
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from device_runner.failures import RigFailure, SetupMissing
from device_runner.files import scratch_folder, write_whole
from harness.base.process import cores
from harness.measure.records.index_database import LINE, SERIES
from harness.measure.records.record import LONGEST_LINE_BYTES
from harness.tools.lake.record_dataset import BY_TIME, CHOSEN, SERIES_NAMES, WANTED_OF_DEVICE, Lines, RecordDataset

if TYPE_CHECKING:
    import pyarrow


FACTS = tuple(attribute.rpartition(".")[2] for attribute in (*SERIES, *LINE))
"""Columns beside the line: those of the index of a file (`harness.measure.records.index_database`)."""
TEXT = "line"
SUFFIX = ".parquet"
ROWS_OF_A_GROUP = 512
COMPRESSION_LEVEL = 1
LARGEST_GROUP_BYTES = ROWS_OF_A_GROUP * LONGEST_LINE_BYTES // 8
"""Limit of a row group of a file that others wrote."""
FLAGS, NUMBERS = ("as_shipped", "standalone", "quick", "is_own", "conclusive"), ("week", "recoveries", "place")
_ORDER = [(name, "ascending") for name in ("case", "identity_key", "started")]


@contextmanager
def needing_packages() -> Iterator[None]:
    """Raise SetupMissing where DuckDB or pyarrow is missing, RigFailure for a file that they cannot read or write."""
    try:
        import duckdb
        import pyarrow
    except ImportError as error:
        hint = "`pip install 'adreno-bench[records]'`"
        raise SetupMissing(f"records in Parquet need a package: {error}", hint=hint) from None
    try:
        yield
    except (duckdb.Error, pyarrow.ArrowException, OSError, LookupError) as error:
        reason = str(error).partition("\n")[0]
        raise RigFailure(f"cannot read the records: {reason}", hint="is a file damaged? leave it out") from error


def table_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> pyarrow.Table:
    """Return rows as columns of these names. SQLite has numbers for truth values."""
    import pyarrow

    def column(name: str, values: Iterable[Any]) -> pyarrow.Array:
        if name in FLAGS:
            return pyarrow.array(map(bool, values), pyarrow.bool_())
        return pyarrow.array(values, pyarrow.int64() if name in NUMBERS else pyarrow.string())

    columns = zip(*rows, strict=True) if rows else ((),) * len(names)
    return pyarrow.table({name: column(name, values) for name, values in zip(names, columns, strict=True)})


def add_rows(file: Path, rows: pyarrow.Table) -> None:
    """Write a file with these rows and those that it has, each line once. Raises OSError."""
    import pyarrow
    from pyarrow import compute, parquet

    if file.exists():
        stored = parquet.read_table(file)
        fresh = rows.filter(compute.invert(compute.is_in(rows[TEXT], stored[TEXT])))
        if not len(fresh):
            return
        rows = pyarrow.concat_tables([stored, fresh], promote_options="default")
    facts, content = [name for name in rows.column_names if name != TEXT], pyarrow.BufferOutputStream()
    parquet.write_table(
        rows.sort_by(_ORDER),
        content,
        row_group_size=ROWS_OF_A_GROUP,
        use_dictionary=facts,
        write_statistics=facts,
        compression="zstd",
        compression_level=COMPRESSION_LEVEL,
    )
    write_whole(file, content.getvalue().to_pybytes())


class ParquetLines:
    """The lines of one file, by the number of their row."""

    unit = "row"

    def __init__(self, file: Path) -> None:
        """Open the file. Raises RigFailure if it would take too much memory, and what pyarrow raises."""
        from pyarrow import parquet

        self._file = parquet.ParquetFile(file)
        metadata = self._file.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        if any(group.total_byte_size > LARGEST_GROUP_BYTES for group in groups):
            message = f"{file} has row groups of more than {LARGEST_GROUP_BYTES >> 20} MiB"
            raise RigFailure(message, hint="did `adreno-bench records compact` write it?")
        self._begins = [0, *accumulate(group.num_rows for group in groups)]

    def read(self, rows: Sequence[int]) -> Iterator[bytes]:
        """Yield the lines of these rows."""
        import pyarrow

        groups = sorted({bisect_right(self._begins, row) - 1 for row in rows})
        lines = self._file.read_row_groups(groups, columns=[TEXT])[TEXT].cast("binary")
        numbers = chain.from_iterable(range(self._begins[group], self._begins[group + 1]) for group in groups)
        place_of = {number: place for place, number in enumerate(numbers)}
        places = array("q", [place_of[row] for row in rows])
        # Of a list pyarrow makes an array only after it has imported pandas, if there is one: 50 MB.
        chosen = pyarrow.Array.from_buffers(pyarrow.int64(), len(places), [None, pyarrow.py_buffer(places)])
        yield from lines.take(chosen).to_pylist()


MEMORY = "400MB"
"""What DuckDB may use; beyond, it sorts on the disk."""


_LAST = "(is_own, started, source, place)"


class ParquetDataset(RecordDataset):
    """Records of files of JSON lines and Parquet. Raises SetupMissing without DuckDB and pyarrow.

    DuckDB takes a fifth of the time for `arg_max` that it takes for a window.
    """

    newest_query = f"""SELECT last.source, last.place, {SERIES_NAMES}
        FROM (SELECT {SERIES_NAMES}, arg_max({{'source': source, 'place': place}}, {_LAST}) AS last {CHOSEN}
            GROUP BY {SERIES_NAMES})
        ORDER BY {SERIES_NAMES}"""
    newest_builds_query = f"""WITH asked AS (SELECT * {WANTED_OF_DEVICE}),
        newest AS (SELECT {SERIES_NAMES}, arg_max(artifact, {_LAST}) AS artifact FROM asked GROUP BY {SERIES_NAMES})
        SELECT source, place, {SERIES_NAMES} FROM asked SEMI JOIN newest USING ({SERIES_NAMES}, artifact) {BY_TIME}"""
    newest_outcomes_query = f"""SELECT "case", outcome, count(*)
        FROM (SELECT {SERIES_NAMES}, arg_max(outcome, (is_own, started)) AS outcome {CHOSEN} GROUP BY {SERIES_NAMES})
        GROUP BY "case", outcome ORDER BY "case", count(*) DESC, outcome"""

    _reading = staticmethod(needing_packages)

    def _lines(self, source: str) -> Lines:
        return ParquetLines(Path(source)) if source.endswith(SUFFIX) else super()._lines(source)

    def _open(self, files: Sequence[Path]) -> Any:
        """Return a connection to a database whose view `record` has the facts of all files."""
        import duckdb

        config = {
            "memory_limit": MEMORY,
            "threads": cores(),
            "temp_directory": str(self._stack.enter_context(scratch_folder())),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
        db = self._stack.enter_context(duckdb.connect(config=config))
        db.execute("SET parquet_metadata_cache = true")  # or each question reads the end of each file again
        facts = list(self._facts([file for file in files if file.suffix != SUFFIX]))
        types = {**dict.fromkeys(FLAGS, "BOOLEAN"), **dict.fromkeys(NUMBERS, "BIGINT")}
        names = ("source", "place", *FACTS)
        listed = ", ".join(f'"{name}" {types.get(name, "VARCHAR")}' for name in names)
        db.execute(f"CREATE TABLE lines ({listed})")
        if facts:  # an array of pyarrow imports pandas where there is one, which takes 50 MB
            db.register("facts", table_of(names, facts))
            db.execute("INSERT INTO lines SELECT * FROM facts")
        parquet = [glob.escape(str(file)).replace("'", "''") for file in files if file.suffix == SUFFIX]
        listed = ", ".join(f"'{name}'" for name in parquet)
        columns = "filename AS source, file_row_number AS place, * EXCLUDE (filename, file_row_number)"
        options = "filename = true, file_row_number = true, union_by_name = true, hive_partitioning = false"
        rows = f"SELECT {columns} FROM read_parquet([{listed}], {options})"
        db.execute(f"CREATE VIEW record AS SELECT * FROM lines UNION ALL BY NAME {rows}")
        return db
