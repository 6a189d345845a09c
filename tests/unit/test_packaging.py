"""What an installed package has besides Python."""

import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("package", ["harness", "device_runner"])
def test_every_file_that_is_no_python_is_packaged(package: str) -> None:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"][package]
    packaged = {file for pattern in patterns for file in (ROOT / package).glob(pattern) if file.is_file()}
    listed = subprocess.run(["git", "ls-files", "-z", package], cwd=ROOT, capture_output=True, text=True, check=False)
    kept = {ROOT / name for name in listed.stdout.split("\0") if name and not name.endswith(".py")}
    assert kept
    hidden = {file for file in kept if file.name.startswith(".")}  # for editors
    assert kept - hidden - packaged == set()
