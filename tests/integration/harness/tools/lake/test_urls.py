"""Records behind a URL: copied once, and again when they have changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_records import a_record
from s3_server import BUCKET, bucket

from device_runner.failures import RigFailure
from harness.measure.records.places import open_records
from harness.measure.records.record import Record, RecordFile
from harness.tools.shared import remote


def anything(_: str) -> bool:
    return True


def written(folder: Path, name: str, *records: Record) -> Path:
    file = folder / name
    RecordFile(file).append(*records)
    return file


def test_records_of_a_bucket_are_read_and_one_that_fails_costs_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))
    here = written(tmp_path, "night.jsonl", a_record())
    with bucket(tmp_path / "s3") as there:
        for night in ("1", "2"):
            there.files().put_file(str(here), f"{BUCKET}/prefix/{night}/records.jsonl")
        with open_records(there.url) as found:
            assert len(found.every(anything)) == 2
        with open_records(f"{there.url}/1/*.jsonl") as found:
            assert len(found.every(anything)) == 1
        monkeypatch.setattr(remote, "DEADLINE_S", 0.2)
        (there.faults / "slow").write_text("30")
        with pytest.raises(RigFailure, match=f"cannot read {there.url}: FSTimeoutError"):
            open_records(there.url)
