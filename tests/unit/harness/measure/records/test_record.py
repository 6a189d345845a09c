"""Records and their file."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_records import virtual_record

from device_runner.failures import RigFailure
from harness.base.failures import UsageError
from harness.base.outcome import Outcome
from harness.measure.correctness import compare_answers
from harness.measure.facts import Accuracy
from harness.measure.records.record import Record, RecordFile

REQUIRED_KEYS = """schema case model path precision tuning outcome message wall_ms device_ms init_ms first_run_ms
max_abs_err tolerance artifact identity quirks toggles emulated tvm ffi started_at""".split()


def test_a_record_is_one_line_of_json_with_the_documented_keys() -> None:
    line = virtual_record(message="two\nlines", wall_ms=[1.5, 2.5]).line()
    assert "\n" not in line
    assert set(REQUIRED_KEYS) <= set(json.loads(line))


def test_a_record_reads_back_as_it_was_also_with_infinite_errors() -> None:
    record = virtual_record(
        accuracy=compare_answers([], [], 1.0), max_abs_err=float("inf"), facts={"kernels": 3}, toggles={"A": "1"}
    )
    assert Record.model_validate_json(record.line()) == record


def test_records_come_back_in_the_order_written(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "deep" / "records.jsonl")
    records = [virtual_record(run=str(number)) for number in range(5)]
    for record in records:
        file.append(record)
    assert file.load().records == records


def test_a_torn_last_line_is_named_and_spoils_no_other(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    file.append(virtual_record(run="first"))
    with file.path.open("ab") as stream:
        stream.write(virtual_record(run="torn").line().encode()[:100])
    file.append(virtual_record(run="second"))
    loaded = file.load()
    assert [record.run for record in loaded.records] == ["first", "second"]
    assert len(loaded.skipped) == 1
    assert "records.jsonl:2: not a record" in loaded.skipped[0]


WRONG = Accuracy(False, 99.0, 9.9, 0.1, False, 0.001, "off")


@pytest.mark.parametrize(
    "fields",
    [{"accuracy": WRONG}, {"max_abs_err": 99.0, "tolerance": 0.001}, {"max_abs_err": math.nan, "tolerance": 0.001}],
)
def test_a_wrong_answer_that_is_called_ok_is_no_record(tmp_path: Path, fields: dict[str, Any]) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    file.append(virtual_record().model_copy(update=fields))
    loaded = file.load()
    assert loaded.records == []
    assert "records.jsonl:1: `ok` with an" in loaded.skipped[0]
    file.append(virtual_record().model_copy(update={**fields, "outcome": Outcome.WRONG_RESULT}))
    assert len(file.load().records) == 1


def test_a_record_too_long_to_be_read_is_refused_before_a_byte_is_written(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    with pytest.raises(UsageError, match="takes 7 MB, and a line of records has at most 4"):
        file.append(virtual_record(), virtual_record().model_copy(update={"wall_ms": [2.0] * 2_000_000}))
    assert not file.path.exists()


@pytest.mark.parametrize("line", [b"{}", b"[]", b"\xff\xfe", b'{"schema": 99}', b"null", b'"' + b"x" * 10_000 + b'"'])
def test_a_foreign_line_is_skipped_and_named(tmp_path: Path, line: bytes) -> None:
    file = RecordFile(tmp_path / "records.jsonl")
    file.path.write_bytes(line + b"\n")
    file.append(virtual_record())
    loaded = file.load()
    assert len(loaded.records) == 1
    assert len(loaded.skipped) == 1


@pytest.mark.parametrize(
    ("schema", "why"),
    [(0, "not a record of schema 2 (schema"), (3, "a record of schema 3, and this adreno-bench reads")],
)
def test_a_record_of_another_schema_is_refused_by_its_name(tmp_path: Path, schema: int, why: str) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(virtual_record().line().replace('"schema":2', f'"schema":{schema}') + "\n")
    loaded = RecordFile(file).load()
    assert loaded.records == []
    assert f"records.jsonl:1: {why}" in loaded.skipped[0]
    assert ("upgrade" in loaded.skipped[0]) is (schema == 3)


@pytest.mark.parametrize("content", [b"\x08\x0a\x12", b"paths = []\n", b"<html>"])
def test_no_record_is_added_to_a_file_of_another_kind(tmp_path: Path, content: bytes) -> None:
    """`run --records net.onnx` destroyed the network."""
    file = tmp_path / "net.onnx"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"net\.onnx is not a file of records: name another one"):
        RecordFile(file).require_writable()


@pytest.mark.parametrize("content", [b"", b"{}\n", b"\n"])
def test_records_are_added_to_a_file_of_records(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "records.jsonl"
    RecordFile(file).require_writable()
    file.write_bytes(content)
    RecordFile(file).require_writable()


def test_a_missing_file_holds_nothing(tmp_path: Path) -> None:
    assert RecordFile(tmp_path / "none.jsonl").load().records == []


def test_a_disk_that_refuses_is_a_failure_of_the_rig(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RigFailure, match="cannot write the record"):
        RecordFile(tmp_path / "file" / "records.jsonl").append(virtual_record())


def test_two_writers_mix_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    script = (
        "import sys; from pathlib import Path; from harness.measure.records.record import Record, RecordFile\n"
        "record = Record.model_validate_json(sys.stdin.read()); file = RecordFile(Path(sys.argv[1]))\n"
        "for _ in range(50): file.append(record)\n"
    )
    line = virtual_record(evidence="x" * 5000).line()
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, text=True, env=os.environ)
        for _ in range(2)
    ]
    for writer in writers:
        writer.communicate(line, timeout=60)
    loaded = RecordFile(path).load()
    assert (len(loaded.records), loaded.skipped) == (100, [])
