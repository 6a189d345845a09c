"""A short soak: `python -m benchmarks.soak` is the long one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import suites

from benchmarks.soak import WARM_UP, Soak, VirtualFaults, soak
from device_runner.adb_device import AdbDevice
from device_runner.device import Loadable
from device_runner.stand_ins.virtual import VirtualPhone
from harness.compile.artifacts.artifact import Answers, Artifact
from harness.measure.context import Run
from harness.measure.records.record import Record
from harness.measure.tuning import TuningStore

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.long]

CASES = 15
RATE = 0.15
SEED = 7


def test_random_faults_end_in_one_true_record_each_and_leave_nothing(
    phone: VirtualPhone, device: AdbDevice, misbehaving: Loadable, tmp_path: Path
) -> None:
    names = [f"case_{number}" for number in range(WARM_UP + CASES)]
    built: dict[str, Artifact | Answers] = {}
    for name in names:
        built |= suites.built(name, misbehaving, [5_000, 0, 0], tmp_path)
    run = Run(device, TuningStore(tmp_path))
    *records, came = soak([suites.plan(name) for name in names], built, run, VirtualFaults(phone.home), RATE, SEED)
    assert isinstance(came, Soak)
    assert came.records == records
    assert Counter(record.model for record in came.records) == Counter(names[WARM_UP:])
    assert came.injected.total() > 0
    assert came.untrue == []
    assert [name for name in came.left_over if name not in ("device_files", "device_kb")] == [], came.running
    assert any(isinstance(record, Record) and record.recovery for record in records)
    assert came.after.device_files <= came.before.device_files + CASES * 2  # a library and the note beside it
