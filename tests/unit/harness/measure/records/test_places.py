"""Records are found wherever they lie: below a folder, or by a glob."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_records import a_record

from harness.base.failures import UsageError
from harness.measure.records.places import is_place, open_records, record_files
from harness.measure.records.record import Record, RecordFile


def anything(_: str) -> bool:
    return True


def written(folder: Path, name: str, *records: Record) -> Path:
    file = folder / name
    RecordFile(file).append(*records)
    return file


@pytest.mark.parametrize("place", [".", "**/*.jsonl", "one", "[on]*/x.jsonl"])
def test_a_place_is_a_folder_or_a_glob(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    (tmp_path / "one/.hidden").mkdir(parents=True)
    written(tmp_path / "one", "x.jsonl", a_record())
    written(tmp_path / "one/.hidden", "x.txt", a_record())
    monkeypatch.chdir(tmp_path)
    assert [file.resolve() for file in record_files(place)] == [tmp_path / "one/x.jsonl"]
    with open_records(place) as found:
        assert len(found.every(anything)) == 1


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("s3://bucket/records", True),
        ("one", True),
        ("one/x.jsonl", True),
        ("o*/x.jsonl", True),
        ("two", False),
        ("t*/x.jsonl", False),
    ],
)
def test_a_word_is_a_place_if_it_is_a_url_or_files_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str, expected: bool
) -> None:
    (tmp_path / "one").mkdir()
    written(tmp_path / "one", "x.jsonl", a_record())
    monkeypatch.chdir(tmp_path)
    assert is_place(word) is expected


@pytest.mark.parametrize("place", ["empty", "*.jsonl"])
def test_a_place_without_records_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="there are no records in"):
        record_files(place)
