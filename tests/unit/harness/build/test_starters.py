"""Workers that are forked from one process: whatever one of them does, the next one does not know."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.build.starters import ForkStarter

SERVER = """
import os, signal, sys, time
from harness.build import fork_server, worker
fork_server.LOADED = ("no.such.module",)
seen = []
def main(job_file, parent):
    seen.append(job_file.name)
    assert parent == os.getppid()
    print(seen)
    if job_file.name == "litter":
        import tempfile
        tempfile.mkdtemp()
        os.kill(os.getpid(), signal.SIGKILL)
    {"crash": lambda: os.kill(os.getpid(), signal.SIGSEGV), "hang": lambda: time.sleep(60)}.get(job_file.name, int)()
    return 7
worker.main = main
sys.exit(fork_server.main(int(sys.argv[1])))
"""
DEADLINE_S = 30.0


@pytest.fixture
def workers() -> Iterator[ForkStarter]:
    made = ForkStarter((sys.executable, "-c", SERVER))
    yield made
    made.close()


def outcome(workers: ForkStarter, folder: Path, job: str, deadline_s: float = DEADLINE_S) -> int:
    worker = workers.start(folder / job, folder / f"{job}.log")
    try:
        return worker.wait(deadline_s)
    finally:
        worker.end()


def test_a_fork_that_crashes_takes_nobody_along_and_leaves_nothing_behind(workers: ForkStarter, tmp_path: Path) -> None:
    assert outcome(workers, tmp_path, "first") == 7
    assert outcome(workers, tmp_path, "crash") == -11
    assert outcome(workers, tmp_path, "last") == 7
    assert (tmp_path / "last.log").read_text() == "['last']\n"


def test_a_fork_that_hangs_is_ended_and_the_next_job_gets_another_process(workers: ForkStarter, tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        outcome(workers, tmp_path, "hang", 0.5)
    assert outcome(workers, tmp_path, "next") == 7


def test_what_a_killed_worker_leaves_among_temporary_files_is_gone_with_the_pool(
    workers: ForkStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert outcome(workers, tmp_path, "litter") == -9
    assert len(list(folder.glob("*/*"))) == 1
    workers.close()
    assert list(folder.iterdir()) == []
