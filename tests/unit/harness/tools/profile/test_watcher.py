"""Kernels watched beside the measurement of a history's case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from fake_device import FakeDevice, Things, a_plan, things

from device_runner.failures import DeviceLost, RigFailure
from harness.base.outcome import Outcome
from harness.base.plan import Budget
from harness.compile.artifacts.artifact import KERNELS
from harness.measure.context import Run
from harness.measure.loop import run_case
from harness.measure.probes.base import Probe, Step
from harness.measure.progress import SilentProgress
from harness.measure.records.record import Record
from harness.measure.standard_probes import standard_probes
from harness.measure.tuning import TuningStore
from harness.measure.work import Preparation, Work
from harness.tools.profile.watcher import FEWEST, MOST, KernelWatcher, inferences_to_watch
from harness.tools.shared.kernels.peaks import save_peaks
from harness.tools.shared.kernels.profile import kernels_file, read_profiles


def measured(device: FakeDevice, things: Things, **budget: Any) -> tuple[KernelWatcher, Record, Run]:
    """A case that was run on a device and watched."""
    watcher = KernelWatcher()

    def probes(work: Work, prepared: Preparation, run: Run, step: Step) -> Sequence[Probe]:
        return [*standard_probes(work, prepared, run, step), watcher.probe(work)]

    run = Run(device, TuningStore(Path("/nowhere")), as_shipped=True, probes=probes)
    return (
        watcher,
        run_case(replace(a_plan(), budget=Budget(**{"seconds": 0.01, **budget})), things, run, SilentProgress()).record,
        run,
    )


def test_a_case_is_watched_after_its_samples_and_in_their_session(tmp_path: Path) -> None:
    built, device = things(tmp_path), FakeDevice()
    (tmp_path / KERNELS).write_text("__kernel void fused_conv2d_kernel(__global float* p) {\n  p[0] = 1;\n}\n")
    save_peaks(tmp_path, device.identity.key, {"copy_bytes_s": 1e9})
    watcher, record, run = measured(device, built)
    before, after = (device.steps[: (at := device.steps.index("launches"))], device.steps[at + 1 :])
    assert before == ["session", "load", "run", "wall", "wall", "device"]
    assert after == [*["run"] * (len(after) - 1), "closed"], "the answer is judged again, and nothing else is timed"
    watcher.keep(record, run.origin, tmp_path, tmp_path / "records.jsonl")
    (profile,) = read_profiles(kernels_file(tmp_path / "records.jsonl"), lambda _: True)
    assert (profile.case, profile.artifact, profile.as_shipped) == (record.case, record.artifact, True)
    assert (profile.kernels_ms, profile.wall_ms, profile.peaks.copy_gb_s) == (1.5, median(record.wall_ms), 1)
    assert [(one.function, one.ms, len(one.source)) for one in profile.operators] == [("fused_conv2d", 1.5, 16)]


@pytest.mark.parametrize(("each_ms", "watched"), [(1.0, MOST), (200.0, 5), (5_000.0, FEWEST)])
def test_a_slow_case_is_watched_for_fewer_inferences(each_ms: float, watched: int) -> None:
    assert inferences_to_watch(Budget(seconds=20), each_ms) == watched


@pytest.mark.parametrize("failure", [DeviceLost("gone"), RigFailure("not seen")])
def test_kernels_that_cannot_be_watched_cost_the_case_nothing(tmp_path: Path, failure: Exception) -> None:
    watcher, record, run = measured(FakeDevice(fails={"launches": failure}), things(tmp_path))
    assert (record.outcome, len(record.wall_ms)) == (Outcome.OK, 10)
    watcher.keep(record, run.origin, tmp_path, tmp_path / "records.jsonl")
    assert not kernels_file(tmp_path / "records.jsonl").exists()


def test_a_wrong_answer_and_a_quick_look_have_no_profile(tmp_path: Path) -> None:
    built = things(tmp_path)
    for device, quick in ((FakeDevice(error=9.0), False), (FakeDevice(), True)):
        watcher, record, run = measured(device, built, quick=quick)
        watcher.keep(record, run.origin, tmp_path, tmp_path / "records.jsonl")
    assert not kernels_file(tmp_path / "records.jsonl").exists()
