"""Folders for temporary files."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from device_runner.scratch import PREFIX, scratch_folder

HOLDER = """
import sys, time
from device_runner.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "file").touch()
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(temporary: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        held = Path(holder.stdout.readline().strip())
        try:
            with scratch_folder() as own:
                assert sorted(temporary.iterdir()) == sorted([held, own])
        finally:
            holder.kill()
    assert list(temporary.iterdir()) == [held]
    with scratch_folder() as own:
        assert list(temporary.iterdir()) == [own]
    assert list(temporary.iterdir()) == []


def test_what_others_put_among_temporary_files_leads_nowhere(temporary: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "file").touch()
    (temporary / f"{PREFIX}link").symlink_to(tmp_path / "home")
    os.mkfifo(temporary / f"{PREFIX}fifo")
    (temporary / f"{PREFIX}file").touch()
    with scratch_folder() as own:
        assert len(list(temporary.iterdir())) == 4
    assert not own.exists()
    assert (tmp_path / "home" / "file").exists()


def test_a_folder_that_is_removed_before_it_is_locked_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tempfile.mkdtemp
    removed: list[str] = []

    def hurried(prefix: str) -> str:
        folder = made(prefix=prefix)
        if not removed:
            removed.append(folder)
            Path(folder).rmdir()
        return folder

    monkeypatch.setattr(tempfile, "mkdtemp", hurried)
    with scratch_folder() as own:
        assert own.is_dir()
    assert str(own) not in removed
