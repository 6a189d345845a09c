"""A network of one convolution in images, tuned on the virtual device, and run with what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.base.case import Tuning
from harness.base.outcome import Outcome
from harness.compile.schedules import database
from harness.measure.progress import SilentProgress
from harness.measure.runner import run_suite
from harness.measure.workbench import Request, open_workbench
from harness.tools.tune.devices import open_devices
from harness.tools.tune.dispatcher import SearchBudget
from harness.tools.tune.tune import Bench, tune
from harness.tools.zoo.graph_layers import ImageGraph

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.long, pytest.mark.usefixtures("warm_driver")]


def small_suite(folder: Path) -> Path:
    net = ImageGraph("small", (1, 8, 16, 16))
    made = net.conv(net.relu(net.conv(net.input, 8, 3, pad=1)), 8, 3, pad=1)
    (folder / "small.onnx").write_bytes(net.finish((made, (1, 8, 16, 16))).to_bytes())
    file = folder / "suite.toml"
    file.write_text('models = ["small.onnx"]\npaths = ["texture"]\nbudget_s = 0.2\nsamples = 10\n')
    return file


@pytest.mark.parametrize("names", [["virtual"], ["virtual-1", "virtual-2"]], ids=len)
def test_what_tuning_finds_is_right_and_is_proved_to_be_in_the_build(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    monkeypatch.setenv("ADRENO_BENCH_CACHE", str(cache))
    monkeypatch.setattr("harness.tools.tune.winners.LEAST_GAIN", 0.0)  # of two random schedules none need be faster
    monkeypatch.setattr("harness.tools.tune.search.TaskStanding.gain", 2.0)
    suite, out = small_suite(tmp_path), tmp_path / "schedules.jsonl"
    request = Request.read(suite, None)
    with open_devices(request, names, SilentProgress()) as (builder, devices):
        (tuned,) = tune(Bench(request, builder, devices, SilentProgress()), SearchBudget(trials=3), out)
    assert {trial.device for trial in tuned.trials} <= set(names)
    assert len(tuned.trials) == 3
    assert [trial.message for trial in tuned.trials if not trial.right] == []
    found = database.read(out)
    assert {record.path for record in found.records} == {"texture"}

    with open_workbench(Request.read(suite, ["*-scheduled"], schedules=out), "virtual", SilentProgress()) as bench:
        (record,) = run_suite(bench.plans, bench.run, bench.builder)
    assert (record.outcome, record.tuning) == (Outcome.OK, Tuning.SCHEDULED.value)
    assert record.schedules
    assert record.schedules["sha256"] == found.sha256
    assert sorted(record.schedules["took"]) == sorted(one.name for one in found.records)
    assert record.schedules["changed"]
