"""Records of many files are answered as if they were one, whichever of them are Parquet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dataset_answers import MOMENTS, RECORDS, anything, check_answers, written
from fake_records import a_record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from device_runner.failures import RigFailure
from harness.measure.records.places import open_files, record_files
from harness.measure.records.record import Record
from harness.tools.lake import parquet as record_parquet
from harness.tools.lake.compaction import compact_file
from harness.tools.lake.parquet import ParquetDataset, ParquetLines

pytest.importorskip("duckdb", reason="`make scale` installs it")
pytest.importorskip("pyarrow", reason="`make scale` installs it")


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(RECORDS, min_size=1, max_size=6), min_size=2, max_size=4), st.integers(1, 3))
def test_many_files_answer_what_their_records_say(
    tmp_path_factory: pytest.TempPathFactory, hosts: list[list[Record]], compacted: int
) -> None:
    folder = tmp_path_factory.mktemp("records")
    for number, records in enumerate(hosts):
        file = written(folder, f"{number}.jsonl", records)
        if number < compacted:
            compact_file(file, folder / "dataset")
            file.unlink()
    with open_files(record_files(folder)) as found:
        assert isinstance(found, ParquetDataset)
        check_answers(found, [record for records in hosts for record in records])


def test_rows_of_an_older_version_lack_facts_and_are_read(tmp_path: Path) -> None:
    from pyarrow import parquet

    compact_file(written(tmp_path, "one.jsonl", [a_record()]), tmp_path / "dataset")
    (file,) = record_files(tmp_path / "dataset")
    parquet.write_table(parquet.read_table(file).drop_columns(["recoveries", "conclusive"]), file)
    with ParquetDataset([file]) as found:
        assert len(list(found.newest(anything))) == 1


def test_a_row_whose_line_is_no_record_is_named_and_left_out(tmp_path: Path) -> None:
    from pyarrow import array, parquet

    compact_file(written(tmp_path, "one.jsonl", [a_record(), a_record(case="tiny-texture-float32-untuned")]), tmp_path)
    (file,) = tmp_path.rglob("*.parquet")
    rows = parquet.read_table(file)
    lines = [rows["line"][0].as_py().replace('"schema":2', '"schema":7'), rows["line"][1].as_py()]
    parquet.write_table(rows.set_column(rows.column_names.index("line"), "line", array(lines)), file)
    said: list[str] = []
    with ParquetDataset([file], said.append) as found:
        assert len(list(found.newest(anything))) == 1
    assert len(said) == 1
    assert said[0].startswith(f"skipped {file}, row 0: a record of schema 7")


def test_a_damaged_file_is_a_failure_with_a_line(tmp_path: Path) -> None:
    compact_file(written(tmp_path, "one.jsonl", [a_record()]), tmp_path)
    (file,) = tmp_path.rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(RigFailure, match="cannot read the records: "):
        ParquetDataset([file])


def test_a_file_that_would_fill_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_parquet, "LARGEST_GROUP_BYTES", 100)
    compact_file(written(tmp_path, "one.jsonl", [a_record()]), tmp_path)
    with ParquetDataset(list(tmp_path.rglob("*.parquet"))) as found, pytest.raises(RigFailure, match="has row groups"):
        found.every(anything)


def test_lines_are_found_by_row_across_row_groups(tmp_path: Path) -> None:
    from pyarrow import parquet, table

    lines = [f"line {number}" for number in range(1000)]
    parquet.write_table(table({"line": lines}), tmp_path / "x.parquet", row_group_size=64)
    wanted = [999, 0, 64, 63, 500]
    assert list(ParquetLines(tmp_path / "x.parquet").read(wanted)) == [lines[row].encode() for row in wanted]


def test_lines_and_columns_say_the_same(tmp_path: Path) -> None:
    from pyarrow import parquet

    compact_file(written(tmp_path, "one.jsonl", [a_record(started_at=MOMENTS[0])]), tmp_path)
    (row,) = parquet.read_table(next(tmp_path.rglob("*.parquet"))).to_pylist()
    line = json.loads(row["line"])
    assert [row[name] for name in ("case", "identity_key", "artifact", "outcome")] == [
        line[name] for name in ("case", "identity_key", "artifact", "outcome")
    ]
