"""What an installed package has besides Python."""

import re
import subprocess
import sys

import pytest
from places import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@pytest.mark.parametrize("package", ["harness", "device_runner"])
def test_every_file_that_is_no_python_is_packaged(package: str) -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"][package]
    packaged = {file for pattern in patterns for file in (ROOT / package).glob(pattern) if file.is_file()}
    listed = subprocess.run(["git", "ls-files", "-z", package], cwd=ROOT, capture_output=True, text=True, check=False)
    kept = {ROOT / name for name in listed.stdout.split("\0") if name and not name.endswith(".py")}
    assert kept
    hidden = {file for file in kept if file.name.startswith(".")}  # for editors
    assert kept - hidden - packaged == set()


def test_the_version_is_the_same_everywhere() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\n## [{version}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_who_installs_without_tvm_is_told_all_that_is_needed() -> None:
    page = (ROOT / "docs/how-to/own-tvm.md").read_text("utf-8").splitlines()
    told = next(line for line in page if line.startswith("pip install adbutils")).split()[2:]
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    names = [re.split(r"[>=;]", one)[0] for one in dependencies]
    assert told == [name for name in names if not name.startswith(("apache-tvm", "tomli"))]
