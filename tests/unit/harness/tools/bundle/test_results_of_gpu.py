"""Results of a real GPU, an NVIDIA H200, as `adreno-bench ingest` judges them by the answers of their bundle."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from places import FIXTURES
from typer.testing import CliRunner, Result

from harness.base.failures import UsageError
from harness.base.outcome import ExitCode, Outcome
from harness.cli import app
from harness.measure.facts import Batches
from harness.measure.records.record import RecordFile
from harness.tools.bundle.manifest import LINES

BUNDLE, RESULTS = FIXTURES / "bundle" / "bundle.tar.gz", FIXTURES / "bundle" / "results.tar.gz"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(tmp_path / "cache"))


def taken_in(results: Path, records: Path) -> Result:
    words = ["ingest", str(results), "--bundle", str(BUNDLE), "--records", str(records)]
    return CliRunner().invoke(app, words, catch_exceptions=False)


def test_they_become_records_like_any_other_and_only_once(tmp_path: Path) -> None:
    records = tmp_path / "records.jsonl"
    for said in ("6 records of bundle db6842aeae90 went to", "0 records of bundle db6842aeae90 went to"):
        result = taken_in(RESULTS, records)
        assert result.exit_code == ExitCode.GOOD
        *_, last = result.output.splitlines()
        assert last.startswith(said)
        assert last.endswith("; 6 were there already") is said.startswith("0")
    kept = RecordFile(records).load().records
    assert len(kept) == 6
    assert {record.outcome for record in kept} == {Outcome.OK}
    assert {record.identity_key for record in kept} == {"local-NVIDIA_H200-82a4d7bc"}
    batches = [record.part(Batches) for record in kept]
    assert all(part and part.launches and part.batched_ms and part.synced_ms for part in batches)


def test_with_a_byte_changed_they_are_refused(tmp_path: Path) -> None:
    shutil.unpack_archive(RESULTS, tmp_path)
    changed = tmp_path / "results"
    lines = bytearray((changed / LINES).read_bytes())
    at = lines.index(b'"wall_ms": [') + len(b'"wall_ms": [')
    lines[at] ^= 1
    (changed / LINES).write_bytes(lines)
    with pytest.raises(UsageError, match=r"line 2 of turns\.jsonl does not follow from"):
        taken_in(changed, tmp_path / "records.jsonl")
    assert not (tmp_path / "records.jsonl").exists()
