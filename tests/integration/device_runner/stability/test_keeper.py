"""A case on a phone that gets hot in the middle: from the phone's own pages to the record."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_device import FakeDevice, a_plan, things

from device_runner.device import Steadiness, T, ThermalLimits
from device_runner.stability.keeper import Keeper
from device_runner.stand_ins.local import LocalTransport
from device_runner.stand_ins.virtual import phone
from device_runner.stand_ins.virtual.phone import Battery, PhoneState
from harness.base.outcome import Outcome
from harness.measure.context import Run
from harness.measure.loop import run_case
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.tuning import TuningStore


class PhoneOfFiles(FakeDevice):
    """Answers from plain Python; what it tells of its heat comes from the folder of a virtual phone."""

    keeper: Keeper
    event: Callable[[], object]

    def steadily(self, work: Callable[[], T], limits: ThermalLimits) -> tuple[T, Steadiness]:
        return self.keeper.steadily(work, ThermalLimits(wait_s=0))

    def met(self, step: str) -> None:
        super().met(step)
        if step == "device":  # after the samples of wall time, before the end of the measurement
            self.event()


def run(home: Path, **changes: Any) -> Record:
    """A case on a phone whose state changes in mid-run."""
    phone.prepare(home)
    path = f"{home / 'system/bin'}:{os.environ['PATH']}"
    device = PhoneOfFiles()
    transport = LocalTransport(str(home / "data/local/tmp/adreno-bench"), {"PATH": path})
    device.keeper = Keeper(transport, system=str(home), wired=True)
    device.event = lambda: phone.save(home, phone.load(home).changed(changes))
    record = run_case(a_plan(), things(home / "built"), Run(device, TuningStore(home)), SilentProgress()).record
    device.keeper.close()
    assert device.steps[-1] == "closed"
    return record


def test_a_phone_that_stays_cool_gives_samples(tmp_path: Path) -> None:
    record = run(tmp_path)
    assert record.outcome is Outcome.OK
    assert record.wall_ms
    assert record.throttled_ms == []
    assert record.steadiness["knobs"]["screen"] == "Awake"
    assert record.steadiness["before"]["gpu_c"] == 36.0


def test_a_case_on_a_flat_battery_is_judged_and_not_timed(tmp_path: Path) -> None:
    phone.prepare(tmp_path)
    phone.save(tmp_path, PhoneState(battery=Battery(level_percent=12)))
    record = run(tmp_path)
    assert record.outcome is Outcome.THROTTLED
    assert record.message == "nothing was timed: the battery is at 12 %, below its floor of 20 %"
    assert "run again with --resume" in record.hint
    assert record.accuracy
    assert record.accuracy.right
    assert record.wall_ms == record.throttled_ms == record.device_ms == []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"gpu": {"thermal_level": 2}}, "heat held the GPU at power level 2 (400 of 800 MHz)"),
        ({"thermal_status": 4}, "Android's thermal status was 4 (critical)"),
        ({"gpu": {"resets": 1}}, "the GPU was reset meanwhile"),
    ],
)
def test_a_phone_that_gets_hot_in_mid_run_gives_none_that_count(
    tmp_path: Path, changes: dict[str, Any], why: str
) -> None:
    record = run(tmp_path, **changes)
    assert record.outcome is Outcome.THROTTLED
    assert record.message.startswith(why)
    assert record.wall_ms == record.device_ms == []
    assert record.throttled_ms
    assert Record.model_validate_json(record.line()) == record
