"""The wheel in an environment of its own, without a checkout: the program, and the notebook of the docs.

The environment has the packages of this one behind it, but for ours: to fetch them would take minutes and a network.
`.ci/release` fetches them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_networks import network
from waiting import LONG_S

from device_runner import installed_tvm

pytestmark = [pytest.mark.rest, pytest.mark.device, pytest.mark.slow, pytest.mark.usefixtures("warm_driver")]
ROOT = Path(__file__).parents[2]
NOTEBOOK = ROOT / "docs/tutorial/notebook.ipynb"
RUN_NOTEBOOK = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
notebook.cells.append(nbformat.v4.new_code_cell("print(bench.__file__)"))
nbformat.write(NotebookClient(notebook, timeout=int(sys.argv[2])).execute(), "run.ipynb")
"""
"""Runs the cells in a kernel of the same Python, as Jupyter does."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that has the wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    clone = folder / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True, timeout=LONG_S)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(clone)]
    subprocess.run([*pip, *build], check=True, timeout=LONG_S)
    (wheel,) = folder.glob("adreno_bench-*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True, timeout=LONG_S)
    python = folder / "venv/bin/python"
    install = ["--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*pip, *install], check=True, timeout=LONG_S)
    (site,) = folder.glob("venv/lib/python*/site-packages")
    (site / "others.pth").write_text(f"{installed_tvm.package_folder('tvm_ffi').parent}\n")
    return python.parent


def call(folder: Path, cache: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder that knows nothing of the checkout."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    variables = {**known, "ADRENO_BENCH_CACHE": str(cache)}
    return subprocess.run(
        [*map(str, command)], cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=LONG_S
    )


def test_the_program_of_the_wheel_runs_a_model_without_a_checkout(
    environment: Path, cache: Path, tmp_path: Path
) -> None:
    import onnx

    relu = onnx.helper.make_node("Relu", ["x"], ["y"])
    onnx.save(onnx.shape_inference.infer_shapes(network([relu], {"x": [1, 4, 8, 8]})), tmp_path / "net.onnx")
    program = environment / "adreno-bench"
    where = call(tmp_path, cache, environment / "python", "-c", "import harness; print(harness.__file__)")
    assert str(environment.parent) in where.stdout
    assert call(tmp_path, cache, program, "--version").stdout.startswith("adreno-bench 0.")
    doctor = call(tmp_path, cache, program, "doctor")
    assert doctor.returncode == 0, doctor.stdout
    done = call(tmp_path, cache, program, "run", "--model", "net.onnx", "--path", "opencl", "--quick")
    assert done.returncode == 0, done.stderr
    (record,) = map(json.loads, (tmp_path / "records.jsonl").read_text().splitlines())
    assert (record["case"], record["outcome"]) == ("net-opencl-float32-untuned", "ok")


@pytest.mark.long
def test_the_notebook_of_the_docs_runs_from_the_wheel(environment: Path, cache: Path, tmp_path: Path) -> None:
    for package in ("nbclient", "nbformat", "ipykernel"):
        pytest.importorskip(package, reason="`make scale` installs it")
    done = call(tmp_path, cache, environment / "python", "-c", RUN_NOTEBOOK, NOTEBOOK, f"{LONG_S:.0f}")
    assert done.returncode == 0, done.stderr
    cells = json.loads((tmp_path / "run.ipynb").read_text("utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    shown = ["".join(output.get("data", {}).get("text/html", ())) for output in outputs]
    assert sum('<table class="matrix">' in html for html in shown) == 2
    told = {
        name: "".join(text for output in outputs for text in output.get("text", ()) if output["name"] == name)
        for name in ("stdout", "stderr")
    }
    assert told["stdout"].startswith(str(environment.parent))
    assert "tiny-texture-float32-untuned: ok" in told["stderr"], "progress is shown"


def test_the_notebook_is_kept_without_what_a_run_left_in_it() -> None:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")
