"""Two and three releases of TVM for real: compared, bisected, and taken for commits one of which does not build."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import command
import pytest
from plain_network import write_plain_onnx

from device_runner.stand_ins.virtual.faults import FAULTS_VARIABLE
from harness.base.outcome import ExitCode
from harness.compile.artifacts.pool import load_artifact
from harness.compile.compiler.releases import RELEASES
from harness.judge.revisions.git import git
from harness.judge.revisions.repository import PINS

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.timeout(3600), pytest.mark.long]

TEXTURE, OPENCL = "plain-texture-float32-untuned", "plain-opencl-float32-untuned"
SHIPPED = "--as-shipped"


KEEPS = {"driver_keeps_programs": True}
"""A cold start is half of what a session of the small network costs, and none of these tests is about it."""


@pytest.fixture(scope="module")
def home(cache: Path, sidecar_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a suite, and a cache whose environments are kept from run to run: each is 0.6 GB."""
    (sidecar_cache / "toolchains").mkdir(exist_ok=True)
    if not (cache / "toolchains").exists():
        (cache / "toolchains").symlink_to(sidecar_cache / "toolchains")
    folder = tmp_path_factory.mktemp("revisions")
    write_plain_onnx(folder)
    suite = 'models = ["plain.onnx"]\npaths = ["opencl", "texture"]\nbudget_s = 0.1\nsamples = 10\n'
    (folder / "suite.toml").write_text(suite)
    return folder


def bench(home: Path, cache: Path, *arguments: str, **faults: Any) -> tuple[int, Any, str]:
    """Exit code, what was printed as JSON, and what was said beside it. `faults` are the virtual phone's."""
    (home / "faults.json").write_text(json.dumps({**KEEPS, **faults}))
    words = (*arguments, "--suite", "suite.toml", "--json")
    code, out, err = command.bench(home, cache, *words, **{FAULTS_VARIABLE: str(home / "faults.json")})
    if "cannot be built or installed" in err and "No matching distribution" in err:
        pytest.skip(f"the releases cannot be had here: {err}")
    assert out, err
    return code, json.loads(out), err


@pytest.fixture(scope="module")
def compared(home: Path, cache: Path) -> tuple[int, Any, str]:
    """Two releases as shipped, whose records are kept. The GPU is emulated, so no latency is compared."""
    kept = ("--records", "kept")
    return bench(home, cache, "compare", "0.25.0.post1", "0.27.0.post1", SHIPPED, *kept)


def test_two_releases_compared_say_that_the_texture_path_became_wrong(
    home: Path, compared: tuple[int, Any, str]
) -> None:
    code, said, told = compared
    verdicts = {case["case"]: case for case in said["cases"]}
    assert code == 3, told
    assert verdicts[TEXTURE]["verdict"] == "wrong"
    assert verdicts[TEXTURE]["base"]["outcome"] == "ok"
    assert verdicts[OPENCL]["verdict"] == "same"
    assert "only outcomes are compared" in verdicts[OPENCL]["reasons"][0]
    assert verdicts[OPENCL]["head"]["outcome"] == "ok"
    tvm = {json.loads(line)["tvm"] for line in (home / "kept" / "head.jsonl").read_text().splitlines()}
    assert tvm == {"0.27.0.post1"}


@pytest.mark.long
def test_a_library_that_is_slowed_is_confirmed_slower(home: Path, cache: Path, compared: tuple[int, Any, str]) -> None:
    (shipped,) = (case for case in compared[1]["cases"] if case["case"] == OPENCL)
    head = load_artifact(cache, shipped["head"]["artifact"])
    assert head
    slowness = {"factor": 1.3, "library": f"{head.loadable.sha256}*", "kernel": "*"}
    steady = {"simulate_inference_s": 0.02}  # latencies of a shared host are not what this is about
    asked = ("compare", "0.25.0.post1", "0.27.0.post1", SHIPPED, "--case", OPENCL, "--latency")
    code, said, told = bench(home, cache, *asked, **steady, slow_kernels=[slowness])
    (case,) = said["cases"]
    assert case["verdict"] == "slower", (case, told)
    assert case["relative"] == pytest.approx(0.3, abs=0.05)
    assert " sessions in turns" in case["reasons"][0]
    assert f"its kernels were not watched: {OPENCL} launches no kernels" in case["reasons"][-1]  # it waits instead
    assert code == ExitCode.SLOWER, told


def test_a_profile_against_a_release_shows_the_kernels_of_both(home: Path, cache: Path) -> None:
    (home / "faults.json").write_text(json.dumps(KEEPS))
    words = ("profile", "--case", OPENCL, SHIPPED, "--against", "0.25.0.post1", "--suite", "suite.toml")
    code, out, err = command.bench(home, cache, *words, **{FAULTS_VARIABLE: str(home / "faults.json")})
    if "No matching distribution" in err:
        pytest.skip(f"the releases cannot be had here: {err}")
    assert code == ExitCode.GOOD, err
    assert f"here: {OPENCL}\nthere: {OPENCL} by 0.25.0.post1\n" in out


def test_bisecting_the_releases_names_0_26_and_shows_what_changed(home: Path, cache: Path) -> None:
    asked = ("bisect", "--good", "0.25.0.post1", "--bad", "0.27.0.post1", "--case", TEXTURE, SHIPPED)
    code, said, told = bench(home, cache, *asked)
    assert (code, said["reason"], said["first_bad"]) == (0, "wrong", "0.26.0"), told
    diff = (Path(said["folder"]) / "kernels.diff").read_text()
    assert [line for line in diff.splitlines() if line.startswith("+") and "write_imagef" in line]
    sessions = (Path(said["folder"]) / "records.jsonl").read_text()
    assert bench(home, cache, *asked)[:2] == (0, said)
    assert (Path(said["folder"]) / "records.jsonl").read_text() == sessions, "what is known was measured again"


@pytest.mark.long
def test_a_commit_that_does_not_build_stays_a_candidate(home: Path, cache: Path) -> None:
    repo, commits = home / "tvm", []
    repo.mkdir()
    git(repo, "init", "--quiet", "--initial-branch=main")
    for required in (RELEASES["0.25.0.post1"].pins, ["./nothing-here"], RELEASES["0.26.0"].pins):
        (repo / PINS).write_text("\n".join(required))
        git(repo, "add", PINS)
        git(repo, "commit", "--quiet", "-m", required[0], date="2026-01-01T00:00:00+00:00")  # the same in every run
        commits.append(git(repo, "rev-parse", "HEAD").strip()[:10])
    (releases,) = (cache / "releases").glob("*/asv.conf.json")
    config = {**json.loads(releases.read_text()), "repo": "tvm"}
    (home / "asv.tvm.conf.json").write_text(json.dumps(config))
    code, said, told = bench(home, cache, "bisect", "--good", "main~2", "--bad", "main", "--case", TEXTURE, SHIPPED)
    assert (code, said["first_bad"], said["candidates"]) == (5, None, commits[1:]), told
    looks = {look["name"]: look for look in said["looks"]}
    assert looks[commits[1]]["outcome"] == "does not build"
    assert "nothing-here" in looks[commits[1]]["why"]
    records = (Path(said["folder"]) / "records.jsonl").read_text().splitlines()
    assert {json.loads(line)["tvm"] for line in records} == {f"0.25.0.post1+g{commits[0]}", f"0.26.0+g{commits[2]}"}
