"""What the build of a commit is told, tried on repositories with submodules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from device_runner.failures import DiskFull
from harness.judge.revisions.git import git
from harness.judge.revisions.repository import UNUSED_SUBMODULES, build_variables
from harness.tools.shared import environment
from harness.tools.shared.environment import packages_so_far, require_room
from harness.tools.shared.install import complaint, require_import

LOCAL = ("-c", "protocol.file.allow=always")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a submodule that a build needs and one that it does not."""
    for name in ("needed", "unused", "tvm"):
        (tmp_path / name).mkdir()
        git(tmp_path / name, "init", "--quiet", "--initial-branch=main")
        git(tmp_path / name, "commit", "--quiet", "--allow-empty", "-m", name)
    for name, path in (("needed", "3rdparty/tvm-ffi"), ("unused", UNUSED_SUBMODULES[0])):
        git(tmp_path / "tvm", *LOCAL, "submodule", "--quiet", "add", str(tmp_path / name), path)
    git(tmp_path / "tvm", "commit", "--quiet", "-m", "submodules")
    return tmp_path / "tvm"


def test_submodules_that_no_build_reads_are_not_fetched(repo: Path, tmp_path: Path) -> None:
    told = {**os.environ, **build_variables(tmp_path), "GIT_CONFIG_GLOBAL": os.devnull}
    clone = ["git", *LOCAL, "clone", "--quiet", "--recursive", str(repo), str(tmp_path / "clone")]  # as asv does
    subprocess.run(clone, env=told, check=True, capture_output=True)
    assert (tmp_path / "clone/3rdparty/tvm-ffi/.git").exists()
    assert not list((tmp_path / "clone" / UNUSED_SUBMODULES[0]).iterdir())


def test_what_the_person_set_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCACHE_BASEDIR", "/mine")
    for name, text in (("COUNT", "1"), ("KEY_0", "user.name"), ("VALUE_0", "somebody")):
        monkeypatch.setenv(f"GIT_CONFIG_{name}", text)
    told = build_variables(tmp_path)
    assert "CCACHE_BASEDIR" not in told
    asked = ["git", "config", "--get", "user.name"]
    said = subprocess.run(asked, env={**os.environ, **told}, capture_output=True, text=True, check=True)
    assert said.stdout == "somebody\n"
    assert told["GIT_CONFIG_COUNT"] == str(1 + len(UNUSED_SUBMODULES))


def test_a_disk_without_room_is_told_before_anything_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_room(tmp_path)
    monkeypatch.setattr(environment, "ROOM_BYTES", 1 << 60)
    with pytest.raises(DiskFull, match=r"too little room to build: up to .* GB for a commit of TVM"):
        require_room(tmp_path)


def test_why_a_build_failed_is_the_compilers_line_not_the_one_that_says_that_it_failed() -> None:
    printed = """
        [517/607] Building CXX object codegen_nvptx.cc.o
        error: run-time type information was enabled in PCH file but is currently disabled
        1 error generated.
        ninja: build stopped: subcommand failed.
      note: This error originates from a subprocess, and is likely not a problem with pip.
      ERROR: Failed building wheel for apache-tvm
    ERROR: Failed to build one or more wheels
    """
    assert complaint(printed) == "error: run-time type information was enabled in PCH file but is currently disabled"
    assert complaint("ERROR: Failed to build one or more wheels\n") == "ERROR: Failed to build one or more wheels"
    assert complaint("no space\n\n") == "no space"
    assert complaint("") == ""


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("import os; os.abort()", "and cannot be imported: Fatal Python error: Aborted"),
        ("raise ImportError('no pass of that name')", "and cannot be imported: ImportError: no pass of that name"),
        ("raise SystemExit(3)", "and cannot be imported: Python ended with code 3 and said nothing"),
        (
            "import atexit, os; atexit.register(lambda: os.kill(os.getpid(), 9))",
            "and Python cannot end with it: Python died of signal 9 and said nothing",
        ),
    ],
)
def test_a_commit_that_is_built_and_cannot_be_used_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    (tmp_path / "tvm").mkdir()
    (tmp_path / "tvm" / "__init__.py").write_text(body)
    for part in ("relax", "s_tir"):
        (tmp_path / "tvm" / f"{part}.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        require_import(Path(sys.executable))
    assert ended.value.code == f"\nit was installed, {why}"


def test_an_installation_says_which_packages_pip_has_so_far(tmp_path: Path) -> None:
    assert packages_so_far(tmp_path) == ""
    for number, name in enumerate(("numpy-2.1-cp311.whl", "apache_tvm-0.27.0.post1-py3.whl")):
        folder = tmp_path / f"pip-unpack-{number}"
        folder.mkdir()
        (folder / name).write_bytes(bytes(2_000_000))
        os.utime(folder / name, (number, number))
    assert packages_so_far(tmp_path) == "pip has 2 packages, the last is apache_tvm (2 MB so far)"
