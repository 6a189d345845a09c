"""The reference kernel: it is measured in the case's session, and never at the case's cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_device import FakeDevice, Things, a_plan, things

from device_runner.failures import DeviceLost, KernelBuildFailure
from harness.build.artifact import Artifact
from harness.build.reference_kernel import CRC
from harness.cases.plan import Job
from harness.run.context import Run
from harness.run.outcome import Outcome
from harness.run.progress import Silent
from harness.run.record import Record
from harness.run.reference import SAMPLES
from harness.run.runner import run_case
from harness.run.tuning import TuningStore

PLAN = replace(a_plan(), reference=Job("reference", "ref", "reference kernel", {}))


@pytest.fixture
def built(tmp_path: Path) -> Things:
    made = things(tmp_path)
    case = made["c-tiny"]
    assert isinstance(case, Artifact)
    facts = replace(case.compiled, facts={CRC: 0xBEEF})
    return {**made, "ref": replace(case, key="ref", compiled=facts)}


def record(built: Things, device: FakeDevice, folder: Path, *, timed: bool = True) -> Record:
    return run_case(PLAN, built, Run(device, TuningStore(folder), timed=timed), Silent())


def test_a_session_times_the_reference_kernel_after_its_case(built: Things, tmp_path: Path) -> None:
    device = FakeDevice()
    told = record(built, device, tmp_path)
    assert told.reference == "0000beef-8192"
    assert len(told.reference_ms) == len(told.slowed_ms) == SAMPLES
    case, of_reference = device.steps.index("wall"), device.steps.index("use binaries")
    assert case < of_reference
    assert device.steps[of_reference:] == ["use binaries", *["run", "device"] * 3, "closed"]


def test_the_device_compiles_it_once_for_all_cases(built: Things, tmp_path: Path) -> None:
    device = FakeDevice()
    for _ in range(3):
        record(built, device, tmp_path)
    assert device.steps.count("binaries") == 1


def test_a_run_that_only_judges_has_none(built: Things, tmp_path: Path) -> None:
    device = FakeDevice()
    assert record(built, device, tmp_path, timed=False).reference_ms == []
    assert device.steps.count("session") == 1


@pytest.mark.parametrize("step", ["binaries", "use binaries"])
@pytest.mark.parametrize("failure", [KernelBuildFailure("no"), DeviceLost("gone"), OSError("no space")])
def test_a_case_is_not_spoilt_by_it(built: Things, tmp_path: Path, step: str, failure: Exception) -> None:
    told = record(built, FakeDevice(fails={step: failure}), tmp_path)
    assert told.outcome is Outcome.OK
    assert told.wall_ms
    assert (told.reference, told.reference_ms, told.slowed_ms) == ("", [], [])


def test_neither_does_one_that_was_not_built(built: Things, tmp_path: Path) -> None:
    case = built["c-tiny"]
    for made in (KernelBuildFailure("no"), case):  # the other is no reference kernel
        told = record({**built, "ref": made}, FakeDevice(), tmp_path)
        assert (told.outcome, told.reference_ms) == (Outcome.OK, [])
