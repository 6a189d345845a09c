"""Records of many files are answered as if they were one, whichever of them are Parquet."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_records import a_record
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from device_runner.device import Identity
from device_runner.failures import RigFailure
from harness.base.outcome import Outcome
from harness.measure.probes.sustained import Sustained
from harness.measure.records.places import record_files
from harness.measure.records.record import Record, RecordFile, Releases
from harness.tools.lake import parquet as record_parquet
from harness.tools.lake.compaction import compact_file
from harness.tools.lake.dataset import RecordDataset
from harness.tools.lake.parquet import ParquetLines

pytest.importorskip("duckdb", reason="`make scale` installs it")
pytest.importorskip("pyarrow", reason="`make scale` installs it")

OLD = Releases(tvm="0.25.0", ffi="0.1.12")
MOMENTS = [f"2026-03-{day:02}T0{hour}:00:00" for day in (1, 2, 3) for hour in range(4)]
RECORDS = st.builds(
    a_record,
    case=st.sampled_from(["tiny-opencl-float32-untuned", "tiny-texture-float32-untuned"]),
    identity=st.sampled_from([Identity("phone", "s", gpu=gpu) for gpu in "AB"]),
    device=st.sampled_from(["a", "b"]),
    as_shipped=st.booleans(),
    sustained=st.sampled_from([None, None, Sustained(asked_s=1)]),
    artifact=st.sampled_from(["a" * 24, "b" * 24]),
    outcome=st.sampled_from([Outcome.OK, Outcome.WRONG_RESULT, Outcome.DEVICE_LOST]),
    compiled_with=st.sampled_from([None, None, OLD]),
    started_at=st.sampled_from(MOMENTS),
    run=st.uuids().map(str),
)


def anything(_: str) -> bool:
    return True


def texture(case: str) -> bool:
    return "texture" in case


def written(folder: Path, name: str, records: Sequence[Record]) -> Path:
    file = folder / name
    RecordFile(file).append(*records)
    return file


def series_of(records: Sequence[Record]) -> dict[tuple[str, str, bool], list[Record]]:
    series: dict[tuple[str, str, bool], list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: record.started):
        series[record.identity_key, record.case, record.as_shipped].append(record)
    return series


def moments_of(builds: Sequence[Sequence[Record]]) -> list[tuple[str, str, bool, tuple[str, ...]]]:
    """What tells builds apart, where sessions that began in the same second come in any order."""
    return sorted(
        (one[0].identity_key, one[0].case, one[0].as_shipped, tuple(record.started for record in one)) for one in builds
    )


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(RECORDS, min_size=1, max_size=6), min_size=2, max_size=4), st.integers(0, 3))
def test_many_files_answer_what_their_records_say(
    tmp_path_factory: pytest.TempPathFactory, hosts: list[list[Record]], compacted: int
) -> None:
    folder = tmp_path_factory.mktemp("records")
    for number, records in enumerate(hosts):
        file = written(folder, f"{number}.jsonl", records)
        if number < compacted:
            compact_file(file, folder / "dataset")
            file.unlink()
    every = [record for records in hosts for record in records]
    latencies = [record for record in every if not record.sustained]
    with RecordDataset(record_files(folder)) as found:
        assert sorted(r.line() for r in found.every(anything)) == sorted(r.line() for r in every)
        assert {r.line() for r in found.every(texture)} == {r.line() for r in every if texture(r.case)}
        assert found.cases == sorted({record.case for record in every})
        assert sorted(found.devices) == sorted({record.device for record in every})
        counted = Counter({(one.outcome, one.sustained): 0 for one in found.outcomes()})
        for one in found.outcomes():
            counted[one.outcome, one.sustained] += one.records
        assert counted == Counter((record.outcome.value, record.standalone) for record in every)
        newest = [max(group, key=lambda r: (r.is_own, r.started)) for group in series_of(latencies).values()]
        assert moments_of([[r] for r in found.newest(anything)]) == moments_of([[r] for r in newest])
        of_a = [record for record in latencies if record.device == "a"]
        for device, of_device in ((None, latencies), ("a", of_a)):
            builds = list(found.newest_builds(anything, device))
            assert [len({record.artifact for record in build}) for build in builds] == [1] * len(builds)
            assert {build[0].identity_key for build in builds} == {record.identity_key for record in of_device}
            for build in builds:
                group = series_of(of_device)[build[0].identity_key, build[0].case, build[0].as_shipped]
                last = max((r.is_own, r.started) for r in group)
                assert build[-1].artifact in {r.artifact for r in group if (r.is_own, r.started) == last}
                assert len(build) == sum(record.artifact == build[0].artifact for record in group)


def test_a_line_that_is_no_record_is_named_with_its_file(tmp_path: Path) -> None:
    written(tmp_path, "one.jsonl", [a_record()])
    other = written(tmp_path, "two.jsonl", [a_record()])
    with other.open("a") as file:
        file.write("{torn\n")
    with RecordDataset(record_files(tmp_path)) as found:
        assert len(found.every(anything)) == 2
        assert [line.partition(": ")[0] for line in found.skipped] == [f"{other}:2"]


def test_rows_of_an_older_version_lack_facts_and_are_read(tmp_path: Path) -> None:
    from pyarrow import parquet

    compact_file(written(tmp_path, "one.jsonl", [a_record()]), tmp_path / "dataset")
    (file,) = record_files(tmp_path / "dataset")
    parquet.write_table(parquet.read_table(file).drop_columns(["recoveries", "conclusive"]), file)
    with RecordDataset([file]) as found:
        assert len(list(found.newest(anything))) == 1


def test_a_row_whose_line_is_no_record_is_named_and_left_out(tmp_path: Path) -> None:
    from pyarrow import array, parquet

    compact_file(written(tmp_path, "one.jsonl", [a_record(), a_record(case="tiny-texture-float32-untuned")]), tmp_path)
    (file,) = tmp_path.rglob("*.parquet")
    rows = parquet.read_table(file)
    lines = [rows["line"][0].as_py().replace('"schema":1', '"schema":7'), rows["line"][1].as_py()]
    parquet.write_table(rows.set_column(rows.column_names.index("line"), "line", array(lines)), file)
    said: list[str] = []
    with RecordDataset([file], said.append) as found:
        assert len(list(found.newest(anything))) == 1
    assert len(said) == 1
    assert said[0].startswith(f"skipped {file}, row 0: not a record")


def test_a_damaged_file_is_a_failure_with_a_line(tmp_path: Path) -> None:
    compact_file(written(tmp_path, "one.jsonl", [a_record()]), tmp_path)
    (file,) = tmp_path.rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(RigFailure, match="cannot read the records: "):
        RecordDataset([file])


def test_a_file_that_would_fill_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_parquet, "LARGEST_GROUP_BYTES", 100)
    compact_file(written(tmp_path, "one.jsonl", [a_record()]), tmp_path)
    with RecordDataset(list(tmp_path.rglob("*.parquet"))) as found, pytest.raises(RigFailure, match="has row groups"):
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
