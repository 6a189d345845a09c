"""A tool that cannot be loaded is one line of every command, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (None, "No module named 'mine'"),
        ("", "module 'mine' has no attribute 'TOOL'"),
        ("TOOL = 7", "its TOOL is a value of int"),
        ("def (", "invalid syntax"),
        ("1 / 0", "division by zero"),
    ],
)
def test_what_is_no_tool_is_told_in_one_line(source: str | None, reason: str, tmp_path: Path) -> None:
    if source is not None:
        (tmp_path / "mine.py").write_text(source, "utf-8")
    done = subprocess.run(
        [sys.executable, "-c", "from harness.cli import main; main()", "list"],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "ADRENO_BENCH_TOOLS": "mine", "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith("adreno-bench: mine is not a tool: ")
    assert reason in line
    assert "correct ADRENO_BENCH_TOOLS" in line
    assert done.returncode == 2
