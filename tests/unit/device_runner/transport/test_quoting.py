"""Arguments survive a shell, and only one place makes shell text of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import device_runner
from device_runner.transport.quoting import quoted

ARGUMENT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(ARGUMENT, min_size=1, max_size=4))
def test_a_shell_gets_the_arguments_that_were_given(arguments: list[str]) -> None:
    said = subprocess.run(["sh", "-c", f"printf '%s\\0' {quoted(*arguments)}"], capture_output=True, check=True)
    assert said.stdout.decode().split("\0")[:-1] == arguments


@pytest.mark.parametrize("evil", ["a; rm -rf /", "$(reboot)", "`reboot`", "a'b\"c", "-rf", "a\nb", "", "*"])
def test_nothing_in_an_argument_is_a_command(evil: str, tmp_path: Path) -> None:
    said = subprocess.run(["sh", "-c", f"printf %s {quoted(evil)}"], capture_output=True, check=True, cwd=tmp_path)
    assert said.stdout.decode() == evil


def test_only_one_file_quotes() -> None:
    package = Path(device_runner.__file__).parent
    quoting = [file.name for file in package.rglob("*.py") if "shlex" in file.read_text(encoding="utf-8")]
    assert quoting == ["quoting.py"]
