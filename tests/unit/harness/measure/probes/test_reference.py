"""The reference kernel: it is measured in the case's session, and never at the case's cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_device import FakeDevice, Things, a_plan, things

from device_runner.failures import DeviceLost, KernelBuildFailure
from harness.base.outcome import Outcome
from harness.base.plan import Job
from harness.compile.artifacts.artifact import CRC, Artifact
from harness.measure.again import MOST_LOOKS
from harness.measure.context import Run
from harness.measure.loop import run_case
from harness.measure.probes.reference import FACTOR, GROWN, GROWTH, SAMPLES, TURNS, long_enough
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.tuning import TuningStore


class Clocked(FakeDevice):
    """A device on which the kernel takes as long as its turns, told by a clock that ticks."""

    def __init__(self, ms_of_8192: float, tick_ms: float) -> None:
        super().__init__()
        self.ms_of_8192, self.tick_ms = ms_of_8192, tick_ms

    def kernels_ms(self, inputs: Sequence[Any]) -> float:
        exact = self.ms_of_8192 * float(inputs[0].flat[0]) / TURNS
        return round(exact / self.tick_ms) * self.tick_ms


PLAN = replace(a_plan(), reference=Job("reference", "ref", "reference kernel", {}))


@pytest.fixture
def built(tmp_path: Path) -> Things:
    made = things(tmp_path)
    case = made["c-tiny"]
    assert isinstance(case, Artifact)
    facts = replace(case.compiled, facts={CRC: 0xBEEF})
    return {**made, "ref": replace(case, key="ref", compiled=facts)}


def record(built: Things, device: FakeDevice, folder: Path, *, timed: bool = True) -> Record:
    return run_case(PLAN, built, Run(device, TuningStore(folder), timed=timed), SilentProgress()).record


def test_a_session_times_the_reference_kernel_after_its_case(built: Things, tmp_path: Path) -> None:
    record(built, FakeDevice(), tmp_path)  # finds how many turns are long enough
    device = FakeDevice()
    told = record(built, device, tmp_path)
    reference = told.reference
    assert reference
    assert reference.kernel == f"0000beef-{TURNS * GROWTH**GROWN}", "its clock never moves, so nothing is long enough"
    assert len(reference.ms) == len(reference.slowed_ms) == SAMPLES
    case, of_reference = device.steps.index("wall"), device.steps.index("use binaries")
    assert case < of_reference
    assert device.steps[of_reference:] == ["use binaries", *["run", "device"] * 3, *["run"] * MOST_LOOKS, "closed"]


def test_the_device_compiles_it_once_for_all_cases(built: Things, tmp_path: Path) -> None:
    device = FakeDevice()
    for _ in range(3):
        record(built, device, tmp_path)
    assert device.steps.count("binaries") == 1


@pytest.mark.parametrize(
    ("ms_of_8192", "tick_ms", "times"), [(0.025, 1e-6, 3), (0.02, 1e-3, 3), (4.7, 1e-6, 0), (0.3, 0.0625, 3)]
)
def test_it_lasts_long_enough_on_every_device_and_clock(
    built: Things, tmp_path: Path, ms_of_8192: float, tick_ms: float, times: int
) -> None:
    device = Clocked(ms_of_8192, tick_ms)
    reference = record(built, device, tmp_path).reference
    assert reference
    assert reference.kernel == f"0000beef-{TURNS * 4**times}"
    assert min(reference.ms) >= 1.0
    assert all(ms == pytest.approx(FACTOR * reference.ms[0], rel=1e-3, abs=tick_ms) for ms in reference.slowed_ms)
    assert len(reference.ms) == SAMPLES


def test_how_long_is_found_once_for_a_device_and_all_its_sessions(built: Things, tmp_path: Path) -> None:
    first, second = Clocked(0.025, 1e-6), Clocked(0.4, 1e-6)  # it found other clocks meanwhile
    timed = [record(built, device, tmp_path).reference for device in (first, second)]
    assert len({reference and reference.kernel for reference in timed}) == 1
    assert second.steps.count("session") == 1


def test_a_kept_number_that_is_damaged_is_found_anew(built: Things, tmp_path: Path) -> None:
    first = record(built, FakeDevice(), tmp_path).reference
    (title,) = (file for file in tmp_path.rglob("title") if "turns" in file.read_text())
    title.with_name("tuning.bin").write_text("8192\u00b2")
    assert record(built, FakeDevice(), tmp_path).reference == first
    assert title.with_name("tuning.bin").read_text() != "8192\u00b2"


@pytest.mark.parametrize(
    ("samples", "others", "enough"),
    [
        ([0.99], [1.3], False),
        ([1.01], [1.023, 1.313], True),
        ([1.05, 1.0], [1.35, 1.4], False),  # a clock of 50 us
        ([4.8, 4.8], [6.2, 6.4], False),  # of 200 us: too coarse
        ([5.0, 5.0], [6.4, 6.6], True),  # and not to be waited for
        ([0.0, 0.0], [0.0, 0.0], False),
    ],
)
def test_long_enough_is_a_matter_of_ms_and_of_ticks(samples: list[float], others: list[float], enough: bool) -> None:
    assert long_enough(samples, others) is enough


def test_a_run_that_only_judges_has_none(built: Things, tmp_path: Path) -> None:
    device = FakeDevice()
    assert record(built, device, tmp_path, timed=False).reference is None
    assert device.steps.count("session") == 1


@pytest.mark.parametrize("step", ["binaries", "use binaries"])
@pytest.mark.parametrize("failure", [KernelBuildFailure("no"), DeviceLost("gone"), OSError("no space")])
def test_a_case_is_not_spoilt_by_it(built: Things, tmp_path: Path, step: str, failure: Exception) -> None:
    told = record(built, FakeDevice(fails={step: failure}), tmp_path)
    assert told.outcome is Outcome.OK
    assert told.wall_ms
    assert told.reference is None


def test_neither_does_one_that_was_not_built(built: Things, tmp_path: Path) -> None:
    case = built["c-tiny"]
    for made in (KernelBuildFailure("no"), case):  # the other is no reference kernel
        told = record({**built, "ref": made}, FakeDevice(), tmp_path)
        assert (told.outcome, told.reference) == (Outcome.OK, None)
