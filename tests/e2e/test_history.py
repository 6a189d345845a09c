"""asv for real: this checkout's head on the virtual device, and TVM's releases, published."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import FIXTURES
from plain_network import write_plain_onnx
from shared_runtimes import link_runtimes
from waiting import LONG_S

from harness.judge.history.releases import checkout
from harness.judge.revisions.git import git
from harness.measure.records.record import RecordFile

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]

SUITE = "models = [{models}]\npaths = [{paths}]\nbudget_s = 0.1\nsamples = 10\n"
RELEASES = ("0.25.0.post1", "0.26.0", "0.27.0.post1")
RECORDED = FIXTURES / "history" / "results"
"""What these releases came to before; tests/e2e/test_recorded_history.py looks at its pages."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config, sidecar_cache: Path) -> Path:
    """asv's own file of machines goes here. `cache` in it is kept from run to run, with the runtimes of all tests."""
    folder = tmp_path_factory.mktemp("home")
    kept = Path(pytestconfig.cache.mkdir("history"))
    link_runtimes(kept, sidecar_cache)
    (folder / "cache").symlink_to(kept)
    return folder


def call(home: Path, *command: str, suite: str = "", device: str = "") -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "HOME": str(home),
        "ADRENO_BENCH_CACHE": str(home / "cache"),
        "PIP_CACHE_DIR": str(Path("~/.cache/pip").expanduser()),
        **({"ADRENO_BENCH_SUITE": suite} if suite else {}),
        **({"ADRENO_BENCH_DEVICE": device} if device else {}),
    }
    options: dict[str, Any] = {"cwd": checkout(), "env": environment, "capture_output": True, "text": True}
    return subprocess.run(command, **options, timeout=2 * LONG_S, check=False)


def bench(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call(home, sys.executable, "-c", "from harness.cli import main; main()", *arguments)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a suite and with this checkout's configuration of asv, whose results go there."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "suite.toml").write_text(SUITE.format(models='"tiny"', paths='"texture"'))
    text = (checkout() / "asv.conf.json").read_text(encoding="utf-8")
    text = text.replace('"repo": "."', f'"repo": "{checkout()}"').replace('": ".asv/', f'": "{folder}/')
    (folder / "asv.conf.json").write_text(text.replace('"benchmarks/', f'"{checkout()}/benchmarks/'))
    return folder


def asv(home: Path, folder: Path, command: str, *arguments: str, device: str = "") -> subprocess.CompletedProcess[str]:
    words = (sys.executable, "-m", "asv", "--config", str(folder / "asv.conf.json"), command, *arguments)
    return call(home, *words, suite=str(folder / "suite.toml"), device=device)


INSTALLED = ("-E", f"existing:{sys.executable}", "--bench", "latency.Wall")


@pytest.mark.long
def test_plain_asv_keeps_devices_apart_and_takes_a_finding_for_a_result(home: Path, tiny: Path) -> None:
    head = git(checkout(), "rev-parse", "HEAD").strip()  # there may be another one before this test ends
    of_head = (*INSTALLED, "--set-commit-hash", head)
    for device in ("virtual", "local"):
        done = asv(home, tiny, "run", *of_head, device=device)
        assert re.search(r"tiny-texture-float32-untuned +\S+ms +failed", done.stdout), done.stdout + done.stderr
        assert "compile-error: TVM failed to lower the model" in done.stdout  # as shipped: depthwise convolutions
        assert (done.returncode, "Traceback" in done.stdout) == (0, False)
    machines = {json.loads(file.read_text())["machine"] for file in (tiny / "results").glob("*/machine.json")}
    assert {name.partition("-")[0] for name in machines} == {"virtual", "local"}
    for file in (tiny / "results").glob("*/*-existing*.json"):
        data = json.loads(file.read_text())
        row = dict(zip(data["result_columns"], data["results"]["latency.Wall.time_inference"], strict=False))
        assert len(row["samples"][0]) >= 10
    (virtual,) = (name for name in machines if name.startswith("virtual"))
    other = asv(home, tiny, "run", *of_head, "--machine", virtual, device="local")
    assert (other.returncode, "holds results of another device" in other.stdout) == (1, True), other.stdout
    both = asv(home, tiny, "compare", head, head)
    assert "Results available for several machines" in both.stdout + both.stderr
    one = asv(home, tiny, "compare", head, head, "--machine", virtual)
    assert re.search(r"latency.Wall.time_inference\('tiny-texture", one.stdout), one.stdout + one.stderr
    shown = asv(home, tiny, "show", head, "--machine", virtual)
    assert "tiny-texture-float32-untuned as-shipped: compile-error: " in shown.stdout, shown.stderr
    assert bench(home, "history", "publish", "--config", str(tiny / "asv.conf.json")).returncode == 0
    front = (tiny / "html" / "index.html").read_text(encoding="utf-8")
    assert "Not the real thing here: soc, gpu" in front
    assert virtual in front


@pytest.mark.long
def test_a_plain_look_keeps_nothing(home: Path, tiny: Path) -> None:
    before = {*(tiny / "results").rglob("*.json*")}
    done = asv(home, tiny, "run", *INSTALLED, "--quick", device="local")
    assert done.returncode == 0, done.stdout + done.stderr
    added = {*(tiny / "results").rglob("*.json*")} - before
    assert {file.name for file in added} <= {"machine.json", "benchmarks.json"}


def test_plain_asv_says_in_one_line_that_there_is_no_such_device(home: Path, tiny: Path) -> None:
    done = asv(home, tiny, "run", *INSTALLED, device="no-such-phone")
    assert done.returncode == 1
    assert "no-such-phone" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


@pytest.fixture(scope="module")
def measured(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The releases' history of a network without depthwise convolutions, which `tiny` has and no release compiles."""
    folder = tmp_path_factory.mktemp("releases")
    made = bench(home, "history", "releases", *RELEASES, "--folder", str(folder))
    if made.returncode == 2 and "pip cannot install" in made.stderr:
        pytest.skip(f"the releases cannot be had here: {made.stderr}")
    assert made.returncode == 0, made.stderr
    write_plain_onnx(folder)
    suite, config = folder / "suite.toml", str(folder / "asv.conf.json")
    suite.write_text(SUITE.format(models='"plain.onnx"', paths='"texture"'))
    run = ("history", "run", "ALL", "--config", config, "--suite", str(suite))
    done = bench(home, *run)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "measured 6 cases" in done.stdout
    again = bench(home, *run)
    assert (again.returncode, "nothing was new" in again.stdout) == (0, True), again.stdout + again.stderr
    return folder


def outcomes(results: Path) -> dict[tuple[str, str, bool], str]:
    """The outcome of each case by release, and by whether it was as shipped."""
    records = [record for file in results.glob("*/*.jsonl") for record in RecordFile(file).load().records]
    return {(record.tvm, record.case, record.as_shipped): record.outcome.value for record in records}


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_three_releases_come_to_what_is_recorded(measured: Path) -> None:
    again = f"cp -r {measured}/results {RECORDED.parent} keeps this history instead"
    assert outcomes(measured / "results") == outcomes(RECORDED), again
    watched = [{file.name for file in folder.glob("*/*.kernels.gz")} for folder in (measured / "results", RECORDED)]
    assert watched[0] == watched[1], again


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_asvs_own_results_have_samples_and_the_devices_fields(measured: Path) -> None:
    (machine,) = (json.loads(file.read_text()) for file in (measured / "results").glob("*/machine.json"))
    assert machine["machine"].startswith("virtual-")
    assert machine["gpu"]
    assert machine["driver"]
    for file in (measured / "results" / machine["machine"]).glob("*-virtualenv*.json"):
        data = json.loads(file.read_text())
        row = dict(zip(data["result_columns"], data["results"]["latency.Wall.time_inference"], strict=False))
        assert len(row["samples"][0]) >= 10
        assert data["params"]["gpu"] == machine["gpu"]
