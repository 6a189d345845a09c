"""Beside a TVM that lies in the folders of one that was built: a wheel of ours, and the action for pull requests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from command import bench
from waiting import LONG_S

from device_runner import installed_tvm

pytestmark = [pytest.mark.device, pytest.mark.slow, pytest.mark.long, pytest.mark.usefixtures("warm_driver")]
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is committed here: pip leaves a folder `build` in what it makes a wheel of."""
    folder = tmp_path_factory.mktemp("clone") / "ours"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True, timeout=LONG_S)
    return folder


@pytest.fixture(scope="module")
def site(clone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that `python -m build` makes from the source distribution that it makes of this checkout, installed."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(clone)],
        check=True,
        timeout=LONG_S,
    )
    (made,) = folder.glob("*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(folder), str(made)], check=True, timeout=LONG_S)
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The installed TVM in the folders that a checkout has after it was built: `python`, `include` and `build/lib`."""
    folder, wheel = tmp_path / "tvm", installed_tvm.package_folder("tvm")
    shutil.copytree(wheel, folder / "python/tvm", ignore=shutil.ignore_patterns("lib", "lib64", "include", "3rdparty"))
    (folder / "include").symlink_to(wheel / "include")
    (folder / "build/lib").mkdir(parents=True)
    for library in (wheel / "lib").glob("*.so"):
        os.link(library, folder / "build/lib" / library.name)
    return folder


def test_a_suite_in_any_folder_runs_on_the_tvm_of_a_checkout_and_builds_anew_when_that_changes(
    site: Path, checkout: Path, cache: Path, tmp_path: Path
) -> None:
    (tmp_path / "my.toml").write_text('models = ["tiny"]\npaths = ["opencl"]\n')
    path = {"PYTHONPATH": f"{site}:{checkout / 'python'}"}

    def ours(*words: str) -> str:
        code, out, err = bench(tmp_path, cache, *words, **path)
        assert code == 0, err
        return out

    quick = "run", "--suite=my.toml", "--quick"
    assert "built 1, took 0 from the store" in ours(*quick)
    assert "built nothing, took 1 from the store" in ours(*quick)
    with (checkout / "python/tvm/topi/__init__.py").open("a") as edited:
        edited.write("# a change that nobody gave a version\n")
    assert "built 1, took 0 from the store" in ours(*quick)
    first, second, third = map(json.loads, (tmp_path / "records.jsonl").read_text().splitlines())
    assert first["tvm"] == second["tvm"] != third["tvm"]
    assert f"+{installed_tvm.BUILT}." in first["tvm"]
    assert str(checkout) in next(line for line in ours("doctor").splitlines() if " tvm " in line)
    where = subprocess.run(
        [sys.executable, "-c", "import harness; print(harness.__file__)"],
        env={**os.environ, **path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=LONG_S,
    )
    assert where.stdout.startswith(str(site))


def an_environment(folder: Path, *first: Path) -> Path:
    """The Python of an environment that has what this one has, but for the packages of the folders named first."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=LONG_S)
    (site,) = folder.glob("lib/python*/site-packages")
    packages = installed_tvm.package_folder("tvm_ffi").parent
    (site / "first.pth").write_text("".join(f"{one}\n" for one in (*first, packages)))
    return folder / "bin" / "python"


def test_the_action_says_what_a_pull_request_broke_on_which_path(
    clone: Path, checkout: Path, cache: Path, tmp_path: Path
) -> None:
    passes = checkout / "python/tvm/s_tir/backend/adreno/pipeline.py"
    vectorised = 'VectorizeLoop(not bool(config.get("tirx.disable_vectorize", False)))'
    assert vectorised in passes.read_text()
    passes.write_text(passes.read_text().replace(vectorised, "VectorizeLoop(False)"))  # each lane fills its whole texel
    (tmp_path / "my.toml").write_text('models = ["tiny"]\npaths = ["opencl", "texture"]\n')
    given = {
        "BASE_PYTHON": str(an_environment(tmp_path / "base")),
        "HEAD_PYTHON": str(an_environment(tmp_path / "head", checkout / "python")),
        "SUITE": "my.toml",
        "CASE": "*",
        "AS_SHIPPED": "no",
        "ISA_GPUS": "",
        "RECORDS": "records",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "ADRENO_BENCH_CACHE": str(cache),
    }
    script = clone / ".github/actions/compare-tvm/compare"
    done = subprocess.run(
        [script], cwd=tmp_path, env=os.environ | given, stderr=subprocess.PIPE, text=True, check=False, timeout=LONG_S
    )
    assert done.returncode == 3, done.stderr
    told = (tmp_path / "summary.md").read_text().splitlines()
    assert told[0] == "**1 wrong** in 2 cases (1 same)"
    case = "tiny-texture-float32-untuned"
    assert told[2] == f"* **wrong** `{case}`: `adreno-bench run --case {case}`"
    assert any("wrong-result: output 0 is off by" in line for line in told)
    assert any(line.startswith("| tiny") and "✓ right" in line and "✗ wrong" in line for line in told)
    assert "wrong-result: output 0 is off by" in (tmp_path / "records" / "report.html").read_text()
