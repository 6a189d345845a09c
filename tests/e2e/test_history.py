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
from plain_network import write_plain_onnx
from shared_runtimes import link_runtimes
from waiting import LONG_S

from harness.history.releases import checkout
from harness.profile.profile import read_profiles

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]

SUITE = "models = [{models}]\npaths = [{paths}]\nbudget_s = 0.1\nsamples = 10\n"
RELEASES = ("0.25.0.post1", "0.27.0.post1")
"""Between them the texture path became wrong; tests/e2e/test_revisions.py finds where."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config, sidecar_cache: Path) -> Path:
    """asv's own file of machines goes here. `cache` in it is kept from run to run, with the runtimes of all tests."""
    folder = tmp_path_factory.mktemp("home")
    kept = Path(pytestconfig.cache.mkdir("history"))
    link_runtimes(kept, sidecar_cache)
    (folder / "cache").symlink_to(kept)
    return folder


def call(home: Path, *command: str, suite: str = "") -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "HOME": str(home),
        "ADRENO_BENCH_CACHE": str(home / "cache"),
        "PIP_CACHE_DIR": str(Path("~/.cache/pip").expanduser()),
        **({"ADRENO_BENCH_SUITE": suite} if suite else {}),
    }
    options: dict[str, Any] = {"cwd": checkout(), "env": environment, "capture_output": True, "text": True}
    return subprocess.run(command, **options, timeout=2 * LONG_S, check=False)


def bench(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return call(home, sys.executable, "-c", "from harness.cli import main; main()", *arguments)


def test_plain_asv_measures_tiny_and_shows_one_line_for_what_failed(home: Path, tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text(SUITE.format(models='"tiny"', paths='"texture"'))
    assert call(home, sys.executable, "-m", "asv", "machine", "--yes").returncode == 0
    command = (sys.executable, "-m", "asv", "run", "-E", f"existing:{sys.executable}", "--quick", "--show-stderr")
    done = call(home, *command, suite=str(suite))
    assert done.returncode == 2, done.stdout  # some failed: as shipped, depthwise convolutions do not compile
    latency = done.stdout.partition("latency.Wall.time_inference")[2].partition("outcome.Outcome")[0]
    assert re.search(r"tiny-texture-float32-untuned +\S+ms +failed", latency), done.stdout
    assert "compile-error: TVM failed to lower the model" in latency
    assert "Traceback" not in done.stdout


@pytest.fixture(scope="module")
def published(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    assert "measured 4 cases" in done.stdout
    again = bench(home, *run)
    assert (again.returncode, "nothing was new" in again.stdout) == (0, True), again.stdout + again.stderr
    shown = bench(home, "history", "publish", "--config", config)
    assert shown.returncode == 0, shown.stderr
    return folder


@pytest.mark.timeout(3600)
def test_the_releases_history_says_that_the_texture_path_became_wrong(home: Path, published: Path) -> None:
    page = (published / "html" / "moved.html").read_text(encoding="utf-8")
    wrong = page.partition('id="wrong"')[2].partition('id="broken"')[0]
    assert "plain-texture-float32-untuned" in wrong
    assert wrong.index("TVM 0.25.0.post1") < wrong.index("TVM 0.27.0.post1")
    assert "Wrong (1)" in page
    assert "Broken (0)" in page
    front = (published / "html" / "index.html").read_text(encoding="utf-8")
    assert "✗ wrong" in front
    assert front.count("✓ right") == 2  # worked around, and the legend
    summary = bench(home, "history", "summary", "--markdown", "--config", str(published / "asv.conf.json"))
    assert "1 right, 1 wrong" in summary.stdout or "1 wrong, 1 right" in summary.stdout


@pytest.mark.timeout(3600)
def test_asv_show_says_why_a_case_failed(home: Path, published: Path) -> None:
    shown = call(
        home, sys.executable, "-m", "asv", "--config", str(published / "asv.conf.json"), "show", "0.27.0.post1"
    )
    assert "plain-texture-float32-untuned as-shipped: wrong-result: " in shown.stdout, shown.stderr


@pytest.mark.timeout(3600)
def test_the_kernels_of_each_right_case_are_on_a_page_of_their_own(published: Path) -> None:
    files = list((published / "results").glob("*/*.kernels.gz"))
    profiles = [profile for file in files for profile in read_profiles(file, lambda _: True)]
    assert [profile.as_shipped for profile in profiles].count(False) == len(files) == len(RELEASES)
    assert all(operator.source and operator.work for profile in profiles for operator in profile.operators)
    assert profiles[0].peaks.copy_gb_s
    index = (published / "html" / "kernels.html").read_text(encoding="utf-8")
    pages = re.findall(r'href="(kernels-\w+\.html)"', index)
    told = "".join((published / "html" / page).read_text(encoding="utf-8") for page in pages)
    assert 'data-name="Operator">conv2d' in told
    assert "Another build." in told


@pytest.mark.timeout(3600)
def test_asvs_own_results_have_samples_and_the_devices_fields(published: Path) -> None:
    (machine,) = (json.loads(file.read_text()) for file in (published / "results").glob("*/machine.json"))
    assert machine["machine"].startswith("virtual-")
    assert machine["gpu"]
    assert machine["driver"]
    for file in (published / "results" / machine["machine"]).glob("*-virtualenv*.json"):
        data = json.loads(file.read_text())
        row = dict(zip(data["result_columns"], data["results"]["latency.Wall.time_inference"], strict=False))
        assert len(row["samples"][0]) >= 10
        assert data["params"]["gpu"] == machine["gpu"]
