"""Every command, once from end to end, on one small network and one virtual phone; other files look at each closely."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from command import bench
from plain_network import write_plain_onnx
from waiting import LONG_S

from harness.base.outcome import ExitCode
from harness.cli import every_command
from harness.measure.records.record import RecordFile

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]

SUITE = 'models = ["plain.onnx"]\npaths = ["opencl"]\nbudget_s = 0.1\nsamples = 10\n'
CASE = "plain-opencl-float32-untuned"
WORDS = {
    "build": "build|quirks are worked around",
    "list": f"list|{CASE}",
    "devices": "devices|an Android-shaped sandbox",
    "doctor": "doctor|OpenCL",
    "inspect": "inspect NET|Conv",
    "init": "init --preset quick other.toml|other.toml",
    "show": f"show {CASE}|{CASE}",
    "kernels": f"kernels {CASE}|_kernel.cl",
    "profile": f"profile --case {CASE}|conv2d",
    "report": "report --out page.html|page.html: 1 case",
    "compare": "compare records.jsonl records.jsonl|not the real thing",
    "bless": "bless|correctness only",
    "gate": f"gate --case {CASE}|same",
    "ops": "ops --op relu_after_conv --path opencl --mode workarounds|Relu",
    "runtime": "runtime list|no runtime yet",
    "cache": "cache|entries",
}
"""The words of a command, and what it prints."""
LONG = ("bisect", "calibrate", "crossover", "diverge", "partitions", "quirks", "reduce", "tune")
CODES = {"compare": (ExitCode.NOTHING_MEASURED, ExitCode.RIG_FAILURE)}
"""Exit codes: of one session each nothing can be said, and on a busy host the slowed kernel may not look slow."""
ELSEWHERE = {
    **dict.fromkeys(LONG, "`make test-long`"),
    "run": "here, before the others, and test_run.py",
    "pack": "below",
    "ingest": "below",
    "history": "test_recorded_history.py",
    "fleet": "tests/device/test_fleet_remote.py (`make test-rest`)",
    "llm": "tests/device/test_llm.py (`make test-rest`)",
    "records": "tests/unit/harness/tools/lake",
    "sustained": "tests/device/test_sustained_on_phone.py (`make test-rest`)",
    "github": "tests/unit/harness/tools/github, against a stand-in",
    "isa": "`make test-isa`: it downloads a compiler",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, cache: Path, warm_driver: dict[str, bool]) -> Path:
    """A folder with a suite, the record of a run, and a network."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "adreno-bench.toml").write_text(SUITE)
    write_plain_onnx(folder)
    code, out, err = bench(folder, cache, "run")
    assert code == ExitCode.GOOD, out + err
    return folder


def test_each_is_tried() -> None:
    assert {command.name for command in every_command()} == {*WORDS, *ELSEWHERE}


def test_two_models_are_measured_in_turns_and_the_last_line_answers(folder: Path, cache: Path) -> None:
    shutil.copy(folder / "plain.onnx", folder / "other.onnx")
    turns = ["--path", "opencl", "--minutes", "0", "--records", "sides", "--plot", "turns.html"]
    code, out, err = bench(folder, cache, "compare", "plain.onnx", "other.onnx", *turns)
    assert code in (ExitCode.GOOD, ExitCode.NOTHING_MEASURED, ExitCode.UNDECIDED), out + err
    assert "base is plain, head is other" in out
    assert out.splitlines()[-1].endswith("; both right")
    cases = [RecordFile(folder / "sides" / f"{side}.jsonl").load().records[0].case for side in ("base", "head")]
    assert cases == [CASE, "other-opencl-float32-untuned"]
    assert out.splitlines()[-1] in (folder / "turns.html").read_text()


@pytest.mark.parametrize("name", WORDS)
def test_it_ends_well_and_says_so(name: str, folder: Path, cache: Path) -> None:
    words, _, said = WORDS[name].partition("|")
    code, out, err = bench(folder, cache, *words.replace("NET", "plain.onnx").split())
    assert code in CODES.get(name, (ExitCode.GOOD,)), f"{code}\n{out}\n{err}"
    assert said in out


def test_a_bundle_is_packed_run_by_a_shell_and_read(folder: Path, cache: Path) -> None:
    code, out, err = bench(folder, cache, "pack", "--out", "bundle.tar.gz")
    assert code == ExitCode.GOOD, out + err
    subprocess.run(["tar", "-xzf", "bundle.tar.gz"], cwd=folder, check=True)
    done = subprocess.run(
        ["sh", "bundle/run.sh", "results"], cwd=folder, capture_output=True, text=True, timeout=LONG_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    code, out, err = bench(folder, cache, "ingest", "results", "--records", "bundle.jsonl")
    assert code == ExitCode.GOOD, out + err
    assert CASE.partition("-")[0] in out
