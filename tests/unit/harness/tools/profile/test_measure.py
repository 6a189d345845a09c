"""Profiles of several cases in a row, and what is shown meanwhile."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from fake_device import FakeDevice, a_plan, things

from device_runner.device import Launch
from device_runner.failures import DeviceCrash
from harness.measure.context import Run
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.tuning import TuningStore
from harness.measure.workbench import Workbench
from harness.tools.profile.measure import WatchedProfile, trace_of, watch
from harness.tools.shared.kernels.profile import Peaks


class Heard(SilentProgress):
    """Which case progress is of, and how it ended."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def step(self, case_id: str, step: str) -> None:
        if self.words[-1:] != [case_id]:
            self.words.append(case_id)

    def done(self, record: Record) -> None:
        self.words.append(record.outcome.value)


def watched(folder: Path, device: FakeDevice, heard: Heard, *names: str) -> list[WatchedProfile]:
    """The profiles of cases of these names, which share a build."""
    plans = [a_plan(name) for name in names]
    built = things(folder / "built")
    builder = SimpleNamespace(build=lambda jobs: {job.key: built[f"{job.key[0]}-tiny"] for job in jobs})
    run = Run(cast(Any, device), TuningStore(folder))
    return watch(cast(Workbench, SimpleNamespace(plans=plans, builder=builder, run=run)), 3, Peaks(), heard)


def test_a_case_is_done_before_the_next_one_is_shown(tmp_path: Path) -> None:
    heard = Heard()
    first, second = watched(tmp_path, FakeDevice(), heard, "tiny", "other")
    assert heard.words == [first.profile.case, "ok", second.profile.case, "ok"]


def test_a_case_that_fails_is_done_as_well(tmp_path: Path) -> None:
    heard = Heard()
    with pytest.raises(DeviceCrash):
        watched(tmp_path, FakeDevice(fails={"launches": DeviceCrash("it is gone")}), heard, "tiny")
    assert heard.words == [a_plan().case.id, "device-crash"]


def launch(kernel: str, start_ns: int, ms: float) -> Launch:
    return Launch(kernel, (64, 1, 1), (16, 1, 1), start_ns, start_ns, start_ns, start_ns + int(ms * 1e6))


def test_a_trace_has_every_launch_in_microseconds() -> None:
    events = json.loads(trace_of([[launch("a", 1_000, 0.5), launch("b", 901_000, 0.25)]]))["traceEvents"]
    assert [(event["name"], event["ts"], event["dur"]) for event in events] == [("a", 0.0, 500.0), ("b", 900.0, 250.0)]
