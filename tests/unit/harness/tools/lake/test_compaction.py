"""A dataset has each record once, however often and whenever its files are compacted."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_records import a_record

from harness.measure.records.record import Record, RecordFile
from harness.tools.lake import compaction
from harness.tools.lake.compaction import compact_file

pytest.importorskip("pyarrow", reason="`make scale` installs it")


def records(count: int, day: int = 1) -> list[Record]:
    return [
        a_record(started_at=f"2026-03-{day:02}T{hour // 60:02}:{hour % 60:02}:00", run=f"{day}-{hour}")
        for hour in range(count)
    ]


def lines_in(folder: Path) -> list[str]:
    from pyarrow import parquet

    files = folder.rglob("*.parquet")
    return sorted(line for file in files for line in parquet.ParquetFile(file).read()["line"].to_pylist())


def lines_of(*some: Record) -> list[str]:
    return sorted(record.line() for record in some)


def test_each_day_has_a_folder_and_the_same_call_again_adds_nothing(tmp_path: Path) -> None:
    file, to = tmp_path / "r.jsonl", tmp_path / "to"
    RecordFile(file).append(*records(3, 1), *records(2, 2), a_record(started_at="no time"))
    for _ in range(2):
        assert compact_file(file, to).records == 6
        assert sorted(folder.name for folder in to.iterdir()) == ["day=2026-03-01", "day=2026-03-02", "day=unknown"]
        assert len(lines_in(to)) == 6


def test_a_file_that_has_grown_adds_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "PART_BYTES", 3 * len(a_record().line()))
    file, to = tmp_path / "r.jsonl", tmp_path / "to"
    for first in range(0, 12, 4):
        RecordFile(file).append(*records(12)[first : first + 4])
        compact_file(file, to)
        assert lines_in(to) == lines_of(*records(12)[: first + 4])


def test_a_file_that_was_begun_anew_keeps_what_is_there(tmp_path: Path) -> None:
    file, to = tmp_path / "r.jsonl", tmp_path / "to"
    RecordFile(file).append(*records(4)[:2])
    compact_file(file, to)
    file.unlink()
    RecordFile(file).append(*records(4)[2:])
    compact_file(file, to)
    assert lines_in(to) == lines_of(*records(4))


def test_two_files_with_the_same_beginning_are_joined(tmp_path: Path) -> None:
    to = tmp_path / "to"
    for number, rest in enumerate(records(3)[1:]):
        file = tmp_path / f"{number}.jsonl"
        RecordFile(file).append(records(1)[0], rest)
        compact_file(file, to)
    assert lines_in(to) == lines_of(*records(3))


def test_days_that_are_mixed_take_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "OPEN_BYTES", 4 * len(a_record().line()))
    mixed = [record for pair in zip(records(9, 1), records(9, 2), strict=True) for record in pair]
    file, to = tmp_path / "r.jsonl", tmp_path / "to"
    RecordFile(file).append(*mixed)
    compact_file(file, to)
    compact_file(file, to)
    assert lines_in(to) == lines_of(*mixed)


def test_lines_that_are_no_records_are_named(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    RecordFile(file).append(*records(1))
    with file.open("a") as out:
        out.write("torn\n")
    taken = compact_file(file, tmp_path / "to")
    assert taken.records == 1
    assert [line.partition(": ")[0] for line in taken.skipped] == [f"{file}:2"]
