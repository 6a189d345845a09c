"""Records of files of which any is Parquet, answered as if they were one: DuckDB reads the columns that it needs."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from device_runner.files import scratch_folder
from harness.base.process import cores
from harness.tools.lake.parquet import FACTS, FLAGS, NUMBERS, SUFFIX, ParquetLines, needing_packages, table_of
from harness.tools.lake.record_dataset import BY_TIME, CHOSEN, SERIES_NAMES, WANTED_OF_DEVICE, Lines, RecordDataset

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
