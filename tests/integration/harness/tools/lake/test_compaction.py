"""A dataset has each record once, however often and whenever its files are compacted."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_records import a_record

from device_runner.failures import RigFailure
from harness.measure.records.record import Record, RecordFile
from harness.tools.lake.compaction import compact

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


@pytest.mark.slow
def test_several_files_are_taken_by_several_processes(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.jsonl" for number in range(3)]
    for number, file in enumerate(files):
        RecordFile(file).append(*records(2, number + 1))
    done: list[int] = []
    taken = compact(files, tmp_path / "to", done.append)
    assert (taken.records, sum(done)) == (6, 3)
    assert len(lines_in(tmp_path / "to")) == 6
    with pytest.raises(RigFailure, match=r"gone\.jsonl: No such file"):
        compact([*files, tmp_path / "gone.jsonl"], tmp_path / "to", lambda _: None)
