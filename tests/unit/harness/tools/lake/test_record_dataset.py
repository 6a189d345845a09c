"""Records of several files of JSON lines are answered as if they were one."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest
from dataset_answers import RECORDS, anything, check_answers, written
from fake_records import a_record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from device_runner.failures import RigFailure
from harness.measure.records.places import record_files
from harness.measure.records.record import Record
from harness.tools.lake.record_dataset import RecordDataset


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(RECORDS, min_size=1, max_size=6), min_size=2, max_size=4))
def test_many_files_answer_what_their_records_say(
    tmp_path_factory: pytest.TempPathFactory, hosts: list[list[Record]]
) -> None:
    folder = tmp_path_factory.mktemp("records")
    for number, records in enumerate(hosts):
        written(folder, f"{number}.jsonl", records)
    with RecordDataset(record_files(folder)) as found:
        check_answers(found, [record for records in hosts for record in records])


def test_a_line_that_is_no_record_is_named_with_its_file(tmp_path: Path) -> None:
    written(tmp_path, "one.jsonl", [a_record()])
    other = written(tmp_path, "two.jsonl", [a_record()])
    with other.open("a") as file:
        file.write("{torn\n")
    with RecordDataset(record_files(tmp_path)) as found:
        assert len(found.every(anything)) == 2
        assert [line.partition(": ")[0] for line in found.skipped] == [f"{other}:2"]


def test_more_files_than_a_process_may_open_are_read(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    already = len(list(Path("/proc/self/fd").iterdir()))  # of all tests before this one
    for number in range(100):
        written(tmp_path, f"{number}.jsonl", [a_record()])
    resource.setrlimit(resource.RLIMIT_NOFILE, (already + 60, hard))
    try:
        with RecordDataset(record_files(tmp_path)) as found:
            assert len(found.every(anything)) == 100
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_file_that_is_gone_when_it_is_read_is_a_failure_with_a_line(tmp_path: Path) -> None:
    written(tmp_path, "one.jsonl", [a_record()])
    written(tmp_path, "two.jsonl", [a_record()])
    with RecordDataset(record_files(tmp_path)) as found:
        (tmp_path / "two.jsonl").unlink()
        with pytest.raises(RigFailure, match=r"cannot read the records: .*two\.jsonl"):
            found.every(anything)
