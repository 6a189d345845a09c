"""One suite on two virtual phones, as a person starts it, and what becomes of it when a phone or the run dies."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import command
import psutil
import pytest
from waiting import LONG_S, eventually

from device_runner.lease import Holder, holder_of
from harness.base.outcome import ExitCode, Outcome
from harness.measure.records.record import Record, RecordFile

pytestmark = [pytest.mark.rest, pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("waiting_inferences")]

SUITE = """
models = ["tiny"]
paths = ["opencl", "texture"]
tunings = ["untuned", "tuned"]
budget_s = {budget_s}
samples = {samples}
"""
PHONES = ("virtual-1", "virtual-2")
CASES = 4


def start(
    folder: Path, cache: Path, *arguments: str, budget_s: float = 0.1, samples: int = 10
) -> subprocess.Popen[str]:
    (folder / "adreno-bench.toml").write_text(SUITE.format(budget_s=budget_s, samples=samples))
    return command.start(folder, cache, *arguments)


def records(folder: Path) -> list[Record]:
    return RecordFile(folder / "records.jsonl").load().records


def holder(phone: str, cache: Path) -> Holder | None:
    return holder_of(phone, cache / "leases")


def at(step: str, cache: Path) -> list[str]:
    """Phones whose run has come to this step."""
    return [phone for phone in PHONES if (owner := holder(phone, cache)) and owner.step == step]


@pytest.mark.long
def test_two_phones_share_the_suite_and_one_that_dies_leaves_its_cases_to_the_other(
    tmp_path: Path, cache: Path
) -> None:
    run = start(tmp_path, cache, "run", "--device", "virtual:2", budget_s=3, samples=1000)
    assert eventually(lambda: "virtual-2" in at("sampling", cache), LONG_S)
    owner = holder("virtual-2", cache)
    assert owner
    os.kill(owner.pid, signal.SIGKILL)  # the phone is its child, and dies with it
    out, err = run.communicate(timeout=LONG_S)
    assert "virtual-2 is out: the process that works on virtual-2 died of signal 9" in err
    assert Counter(record.case for record in records(tmp_path)).most_common(1)[0][1] == 1
    assert [record.outcome for record in records(tmp_path)] == [Outcome.OK] * CASES, out + err
    assert {record.device for record in records(tmp_path)} <= {"virtual-1", "virtual-2"}
    assert records(tmp_path)[-1].device == "virtual-1"
    assert len({record.run for record in records(tmp_path)}) == 1
    assert run.returncode == ExitCode.RIG_FAILURE  # every case was measured, and yet a device was lost
    again = start(tmp_path, cache, "run", "--device", "virtual:2", "--resume", "--json")
    out, err = again.communicate(timeout=LONG_S)
    assert again.returncode == ExitCode.GOOD, err
    assert sorted(r["case"] for r in json.loads(out)) == sorted(record.case for record in records(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.long)])
def test_an_ended_run_ends_all_its_workers_and_phones(tmp_path: Path, cache: Path, number: signal.Signals) -> None:
    run = start(tmp_path, cache, "run", "--device", "virtual:2", "--case", "*-untuned", budget_s=30, samples=3000)
    assert eventually(lambda: at("sampling", cache) == list(PHONES), LONG_S)
    started = psutil.Process(run.pid).children(recursive=True)
    run.send_signal(number)
    run.communicate(timeout=LONG_S)
    _, alive = psutil.wait_procs(started, timeout=60)
    assert [process.cmdline() for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert run.returncode == (-number if number == signal.SIGKILL else 128 + number)
    assert records(tmp_path) == []
    assert [holder(phone, cache) for phone in PHONES] == [None, None]
