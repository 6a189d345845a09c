"""One command of apt brings what is missing, and the script of the CI knows the same packages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from complaints import complaint
from places import ROOT
from typer.testing import CliRunner

from harness.cli import app
from harness.tools.doctor.machine import fix_command, missing_packages


def test_an_empty_machine_needs_what_the_script_of_the_ci_installs(tmp_path: Path) -> None:
    script = (ROOT / ".ci/system-packages").read_text("utf-8")
    of_script = set(re.findall(r"\bneed ([a-z][\w.+-]*)", script)) | {"mksh", "toybox"}
    of_python_and_tests = {"python3-venv", "chromium-headless-shell"}
    missing = missing_packages(tmp_path, lambda _: None)
    assert set(missing) == of_script - of_python_and_tests
    assert fix_command(missing).startswith("sudo apt-get install -y --no-install-recommends pocl-opencl-icd ")


def test_what_is_there_is_not_installed_again(tmp_path: Path) -> None:
    for file in ("etc/OpenCL/vendors/maker.icd", "usr/lib/x86_64-linux-gnu/libOpenCL.so", "usr/include/CL/cl.h"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    assert missing_packages(tmp_path, lambda program: program != "bwrap" or None) == ["bubblewrap"]
    assert missing_packages(tmp_path, lambda _: "/usr/bin/it") == []


def test_the_command_is_all_that_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.tools.doctor.command.missing_packages", lambda: ["g++", "mksh"])
    done = CliRunner().invoke(app, ["doctor", "--fix"])
    assert done.stdout == "sudo apt-get install -y --no-install-recommends g++ mksh\n"
    monkeypatch.setattr("harness.tools.doctor.command.missing_packages", list)
    assert CliRunner().invoke(app, ["doctor", "--fix"]).stdout == "# nothing is missing\n"
    assert "--fix prints a command for this host alone" in complaint("doctor", "--fix", "--device", "virtual")
