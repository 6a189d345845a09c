"""A kernel that the virtual phone makes 1.3 times as slow is found; one that it leaves alone is not.

Inferences wait and do not compute, so the times are steady on a machine that has other things to do; what a slowed
kernel really takes is tested in tests/device/test_virtual_kernels.py.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from command import bench

from device_runner.stand_ins.virtual import Faults, SlowKernels, faults
from device_runner.stand_ins.virtual.phone import FAULTS_JSON
from harness.base.outcome import ExitCode
from harness.measure.progress import SilentProgress
from harness.measure.records.record import RecordFile
from harness.measure.runner import run_suite
from harness.measure.workbench import Request, open_workbench

pytestmark = [pytest.mark.device, pytest.mark.slow]

CASE = "tiny-opencl-float32-untuned"
SUITE = 'models = ["tiny"]\npaths = ["opencl"]\nbudget_s = 0.1\nsamples = 10\n'
INFERENCE_S = 0.02
SESSIONS, MOST_SESSIONS = 3, 8
STILL_OPEN = ("inconclusive",)


def compared(folder: Path, base: str, head: str) -> tuple[int, str]:
    """Exit code of a comparison, and its verdict."""
    words = ["compare", f"{base}.jsonl", f"{head}.jsonl", "--states", "--relevant=10", "--json"]
    code, out, _ = bench(folder, folder / "cache", *words)
    (case,) = json.loads(out)["cases"]
    return code, case["verdict"]


@pytest.mark.long
def test_a_slowed_kernel_is_slower_and_any_other_is_not(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(cache))
    steady = Faults(simulate_inference_s=INFERENCE_S, driver_keeps_programs=True)  # none of this is about a cold start
    faults.write(tmp_path / "faults.json", steady)
    monkeypatch.setenv(faults.FAULTS_VARIABLE, str(tmp_path / "faults.json"))
    (tmp_path / "my.toml").write_text(SUITE)
    factors = {"base": 1.0, "head": 1.3, "again": 1.0}
    with open_workbench(Request.read(tmp_path / "my.toml", None), "virtual", SilentProgress()) as opened:
        for session in range(1, MOST_SESSIONS + 1):
            for name, factor in factors.items():
                slowed = (SlowKernels(factor=factor, kernel="fused*"),)
                faults.write(cache / "virtual" / FAULTS_JSON, replace(steady, slow_kernels=slowed))
                list(run_suite(opened.plans, opened.run, opened.builder, RecordFile(tmp_path / f"{name}.jsonl")))
            if session < SESSIONS:
                continue
            slower, same = compared(tmp_path, "base", "head"), compared(tmp_path, "base", "again")
            assert same[1] in ("same", *STILL_OPEN)
            if not {slower[1], same[1]} & {*STILL_OPEN}:
                break
    assert slower == (ExitCode.SLOWER, "slower")
    assert same == (ExitCode.GOOD, "same")
    for record in RecordFile(tmp_path / "head.jsonl").load().records:
        assert record.proofs["slowed_kernels"]
        assert "inference time" in record.emulated


@pytest.mark.long
def test_any_command_can_be_tried_under_faults(tmp_path: Path, cache: Path, warm_driver: dict[str, bool]) -> None:
    (tmp_path / "my.toml").write_text(SUITE)
    (tmp_path / "faults.json").write_text(json.dumps({**warm_driver, "simulate_inference_s": 0.01}))
    code, out, err = bench(tmp_path, cache, "run", "--suite=my.toml", **{faults.FAULTS_VARIABLE: "faults.json"})
    assert code == ExitCode.GOOD, err
    (record,) = RecordFile(tmp_path / "records.jsonl").load().records
    assert "inference time" in record.emulated
    assert record.wall_ms == pytest.approx([10] * len(record.wall_ms), rel=0.1)
    assert "not the real thing on this device: soc, gpu, clocks, thermal, battery, inference time" in out
