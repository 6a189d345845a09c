"""Folders for temporary files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from device_runner.scratch import scratch_folder

HOLDER = """
import sys, time
from device_runner.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    time.sleep(600)
"""


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        held = Path(holder.stdout.readline().strip())
        try:
            with scratch_folder() as own:
                assert sorted(tmp_path.iterdir()) == sorted([held, own])
        finally:
            holder.kill()
    assert list(tmp_path.iterdir()) == [held]
    with scratch_folder() as own:
        assert list(tmp_path.iterdir()) == [own]
    assert list(tmp_path.iterdir()) == []
