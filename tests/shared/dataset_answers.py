"""Records of many files, and what they have to answer."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from fake_records import a_record
from hypothesis import strategies as st

from device_runner.device import Identity
from harness.base.outcome import Outcome
from harness.measure.records.record import Record, RecordFile, Releases
from harness.tools.lake.record_dataset import RecordDataset

OLD = Releases(tvm="0.25.0", ffi="0.1.12")
MOMENTS = [f"2026-03-{day:02}T0{hour}:00:00" for day in (1, 2, 3) for hour in range(4)]
RECORDS = st.builds(
    a_record,
    case=st.sampled_from(["tiny-opencl-float32-untuned", "tiny-texture-float32-untuned"]),
    identity=st.sampled_from([Identity("phone", "s", gpu=gpu) for gpu in "AB"]),
    device=st.sampled_from(["a", "b"]),
    as_shipped=st.booleans(),
    standalone=st.sampled_from([False, False, True]),
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


def check_answers(found: RecordDataset, every: Sequence[Record]) -> None:
    """Compare all answers of a dataset with what its records say."""
    latencies = [record for record in every if not record.standalone]
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
