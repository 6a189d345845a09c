"""`adreno-bench run --resume` after a run whose device failed: exactly what is missing is completed."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest
from command import bench

from device_runner.stand_ins.virtual.faults import FAULTS_VARIABLE
from device_runner.stand_ins.virtual.handle import REMOTE_ROOT
from harness.base.outcome import ExitCode, Outcome
from harness.measure.records.record import Record, RecordFile

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.long]

SUITE = 'models = ["tiny"]\npaths = ["opencl", "texture"]\nbudget_s = 0.1\nsamples = 10\n'
BETWEEN_BYTES = 450_000
"""The library of one path is smaller, that of the other larger."""


def run(folder: Path, cache: Path, *arguments: str, **faults: object) -> tuple[int, list[Record]]:
    """The exit code, and all records so far."""
    (folder / "adreno-bench.toml").write_text(SUITE)
    (folder / "faults.json").write_text(json.dumps(faults))
    code, _, _ = bench(folder, cache, "run", *arguments, **{FAULTS_VARIABLE: "faults.json"})
    return code, RecordFile(folder / "records.jsonl").load().records


def test_what_a_full_device_left_open_is_completed_and_nothing_else(
    tmp_path: Path, cache: Path, warm_driver: dict[str, bool]
) -> None:
    shutil.rmtree(
        cache / "virtual" / REMOTE_ROOT / "files", ignore_errors=True
    )  # what other tests pushed would not be pushed again
    code, first = run(tmp_path, cache, **warm_driver, full_after_bytes=BETWEEN_BYTES)
    assert code == ExitCode.RIG_FAILURE
    assert Counter(record.outcome for record in first) == {Outcome.OK: 1, Outcome.INFRA_ERROR: 1}
    (failed,) = (record for record in first if record.outcome is Outcome.INFRA_ERROR)
    assert "No space left" in failed.message
    code, records = run(tmp_path, cache, "--resume", **warm_driver)
    assert code == ExitCode.GOOD
    (again,) = records[len(first) :]
    assert (again.case, again.outcome) == (failed.case, Outcome.OK)
