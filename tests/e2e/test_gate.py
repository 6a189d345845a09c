"""Gates the whole way: pytest, TVM, the virtual phone; and a suspicion that is measured again on this host."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import command
import onnx
import pytest
from fake_records import blessing_of
from waiting import LONG_S

from harness.base.outcome import ExitCode, Outcome
from harness.compile.models.sources import model_source
from harness.judge.baseline import load
from harness.measure.records.record import Record, RecordFile

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]

NET = 'models = ["net.onnx"]\npaths = ["opencl"]\nbudget_s = 0.1\nsamples = 10\n'
SUITE = 'models = ["tiny"]\npaths = ["opencl", "texture"]\nbudget_s = 0.1\nsamples = 10\n'
OPENCL, TEXTURE = "tiny-opencl-float32-untuned", "tiny-texture-float32-untuned"


def gates(folder: Path, cache: Path, *options: str) -> tuple[int, str]:
    (folder / "my.toml").write_text(SUITE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--pyargs", "harness.pytest_plugin", "--suite", "my.toml", *options],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "ADRENO_BENCH_CACHE": str(cache)},
        timeout=LONG_S,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def bench(folder: Path, cache: Path, *words: str, suite: str = SUITE) -> tuple[int, str]:
    (folder / "my.toml").write_text(suite)
    code, out, err = command.bench(folder, cache, *words, "--suite", "my.toml")
    return code, out + err


def records(folder: Path) -> list[Record]:
    return RecordFile(folder / "records.jsonl").load().records


def told_in(report: Path) -> list[Record]:
    """The records in JUnit's XML."""
    return [Record.model_validate_json(told.get("value") or "") for told in ET.parse(report).iter("property")]


@pytest.mark.long
def test_pytest_gates_a_suite_of_any_folder_and_builds_nothing_twice(tmp_path: Path, cache: Path) -> None:
    code, said = gates(tmp_path, cache, "-v", "--junit-xml", "gates.xml")
    assert code == 0, said
    assert all(f"test_right[{case}] PASSED" in said for case in (OPENCL, TEXTURE))
    told = told_in(tmp_path / "gates.xml")
    assert [(record.case, record.outcome, record.wall_ms) for record in told] == [
        (OPENCL, Outcome.OK, []),
        (TEXTURE, Outcome.OK, []),
    ]
    code, said = gates(tmp_path, cache, "--case", OPENCL, "--junit-xml", "gates.xml")
    assert code == 0, said
    (again,) = told_in(tmp_path / "gates.xml")
    assert (again.artifact, again.reused) == (told[0].artifact, True)


@pytest.mark.long
def test_two_workers_share_the_cases_and_each_has_a_phone_of_its_own(tmp_path: Path, cache: Path) -> None:
    workers = ("-n", "auto", "--dist", "each", "--device", "virtual-1", "--device", "virtual-2")
    code, said = gates(tmp_path, cache, *workers, "--junit-xml", "gates.xml")
    assert code == 0, said
    told = told_in(tmp_path / "gates.xml")
    assert {(record.device, record.case) for record in told} == {
        (device, case) for device in ("virtual-1", "virtual-2") for case in (OPENCL, TEXTURE)
    }
    code, said = gates(tmp_path, cache, "-n", "2")
    assert code == pytest.ExitCode.USAGE_ERROR
    assert "more workers (2) than devices (1): give --device for each worker, or virtual:2" in said


@pytest.mark.long
def test_as_shipped_the_texture_path_fails_with_all_that_reproduces_it(tmp_path: Path, cache: Path) -> None:
    code, said = gates(tmp_path, cache, "--as-shipped", "--case", "*-texture-*")
    assert code == 1, said
    assert "(owner: path)" in said or "(owner: compiler)" in said
    assert f"adreno-bench run --suite {tmp_path}/my.toml --device virtual --case {TEXTURE} --as-shipped" in said


@pytest.mark.long
def test_of_the_virtual_device_correctness_is_blessed_and_what_becomes_wrong_is_told(
    tmp_path: Path, cache: Path
) -> None:
    code, said = bench(tmp_path, cache, "run")
    assert code == ExitCode.GOOD, said
    for record in records(tmp_path):
        blessing = blessing_of([record])
        assert blessing.baseline
        blessing.baseline.save(tmp_path / "baselines")
    assert {baseline.kind for baseline in load(tmp_path / "baselines")} == {"correctness"}
    code, said = bench(tmp_path, cache, "gate", "--as-shipped", "--json")
    told = json.loads(said[said.index("{\n") :].split("\n}\n")[0] + "}")
    verdicts = {case["case"]: case["verdict"] for case in told["cases"]}
    assert code == ExitCode.WRONG_OR_BROKEN, said
    assert verdicts[OPENCL] == "same"
    assert verdicts[TEXTURE] in ("wrong", "broken")
    code, said = bench(tmp_path, cache, "profile", "--case", OPENCL, "--against", "baselines")
    assert code == ExitCode.GOOD, said
    assert f"there: {OPENCL} of baselines" in said


@pytest.mark.long
def test_a_suspicion_is_measured_again_in_turns_with_the_baselines_build(tmp_path: Path, cache: Path) -> None:
    model = onnx.load(model_source("tiny").onnx_file(tmp_path))
    onnx.save(model, tmp_path / "net.onnx")
    local = ("--device", "local", "--case", "net-opencl-*")
    code, said = bench(tmp_path, cache, "run", *local, suite=NET)
    assert code == ExitCode.GOOD, said
    (old,) = records(tmp_path)
    flattering = old.model_copy(update={"wall_ms": [ms / 3 for ms in varied(old.wall_ms)]})
    blessing = blessing_of([flattering])
    assert blessing.baseline, blessing.notes
    blessing.baseline.save(tmp_path / "baselines")
    model.producer_name = "another"
    onnx.save(model, tmp_path / "net.onnx")  # another file of the same network: another artifact with the same answers
    code, said = bench(tmp_path, cache, "gate", "--most-sessions", "4", *local, suite=NET)
    _, seen, *again = [record.artifact for record in records(tmp_path)]
    assert seen != old.artifact
    assert sorted(again) == sorted([old.artifact, seen, old.artifact]), said
    assert code not in (ExitCode.SLOWER, ExitCode.WRONG_OR_BROKEN), said  # the rest is up to how busy this host is
    assert "4 sessions in turns" in said


def varied(samples_ms: list[float]) -> list[float]:
    """Samples about the same median that no check of steadiness refuses."""
    middle = sorted(samples_ms)[len(samples_ms) // 2]
    return [middle * (1 + 0.01 * wave) for wave in (0, 1, -1, 0.5, -0.5, 1.2, -1.1, 0.2, -0.3, 0.7)]
