"""Workers that are forked from one process: whatever one of them does, the next one does not know."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import LONG_S, eventually, gone

from device_runner.failures import RigFailure
from harness.compile.artifacts.forks import Fork, Forks

SERVER = """
import os, signal, subprocess, sys, tempfile, time
from harness.compile.artifacts import fork_server, worker
fork_server.LOADED = ("no.such.module",)
seen = []
JOBS = {
    "crash": lambda: os.kill(os.getpid(), signal.SIGSEGV),
    "hang": lambda: print(os.getpid(), flush=True) or time.sleep(300),
    "link": lambda: print(subprocess.Popen(["sleep", "300"]).pid, flush=True) or time.sleep(300),
    "litter": lambda: tempfile.mkdtemp() and os.kill(os.getpid(), signal.SIGKILL),
    "orphan": lambda: os.kill(os.getppid(), signal.SIGKILL) or time.sleep(300),
}
def main(job_file, parent):
    seen.append(job_file.name)
    worker.die_with_parent(signal.SIGKILL, parent)
    JOBS.get(job_file.name, lambda: print(seen))()
    return 7
worker.main = main
sys.exit(fork_server.main(*map(int, sys.argv[1:])))
"""
COMMAND = (sys.executable, "-c", SERVER)


@pytest.fixture
def workers() -> Iterator[Forks]:
    made = Forks(COMMAND)
    yield made
    made.close()


def begun(workers: Forks, folder: Path, job: str) -> Fork:
    return workers.start(folder / job, folder / f"{job}.log")


def outcome(workers: Forks, folder: Path, job: str, deadline_s: float = LONG_S) -> int:
    worker = begun(workers, folder, job)
    try:
        return worker.wait(deadline_s)
    finally:
        worker.end()


def said(folder: Path, job: str) -> int:
    """The one number that a job prints."""
    log = folder / f"{job}.log"
    assert eventually(lambda: log.exists() and log.read_text().endswith("\n"))
    return int(log.read_text())


def test_a_fork_that_crashes_takes_nobody_along_and_leaves_nothing_behind(workers: Forks, tmp_path: Path) -> None:
    assert outcome(workers, tmp_path, "first") == 7
    assert outcome(workers, tmp_path, "crash") == -11
    assert outcome(workers, tmp_path, "last") == 7
    assert (tmp_path / "last.log").read_text() == "['last']\n"


def test_a_compiler_that_is_loaded_early_leaves_this_process_free_to_fork(workers: Forks, tmp_path: Path) -> None:
    threads = threading.enumerate()  # a thread of another test may end meanwhile
    workers.load()
    assert set(threading.enumerate()) <= set(threads)
    assert outcome(workers, tmp_path, "first") == 7


def test_a_fork_that_hangs_is_ended_alone_and_with_what_it_started(workers: Forks, tmp_path: Path) -> None:
    other, hanging = begun(workers, tmp_path, "hang"), begun(workers, tmp_path, "link")
    linker = said(tmp_path, "link")
    with pytest.raises(TimeoutError):
        hanging.wait(0)
    hanging.end()
    assert hanging.wait(0) == -signal.SIGKILL
    assert gone(linker)
    assert outcome(workers, tmp_path, "next") == 7
    with pytest.raises(TimeoutError):
        other.wait(0)


def test_forks_of_a_server_that_dies_say_so_and_the_next_job_gets_another(workers: Forks, tmp_path: Path) -> None:
    with pytest.raises(RigFailure, match="the process that starts the compilers died"):
        outcome(workers, tmp_path, "orphan")
    assert outcome(workers, tmp_path, "next") == 7


def test_closing_ends_forks_and_what_they_started_at_once(workers: Forks, tmp_path: Path) -> None:
    fork = begun(workers, tmp_path, "link")
    linker = said(tmp_path, "link")
    workers.close()
    with pytest.raises(RigFailure):
        fork.wait(LONG_S)
    assert gone(linker)
    with pytest.raises(RigFailure, match="the build was stopped"):
        begun(workers, tmp_path, "first")


def test_a_fork_dies_with_the_harness(tmp_path: Path) -> None:
    """Killed outright, the harness cannot end it."""
    harness = f"""
import sys, time
from pathlib import Path
from harness.compile.artifacts.forks import Forks
fork = Forks({COMMAND!r}).start(Path("hang"), Path({str(tmp_path / "hang.log")!r}))
time.sleep(300)
"""
    with subprocess.Popen([sys.executable, "-c", harness], env=os.environ) as parent:
        pid = said(tmp_path, "hang")
        parent.kill()
    assert gone(pid)


def test_what_a_killed_worker_leaves_among_temporary_files_is_gone_with_the_pool(
    workers: Forks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    assert outcome(workers, tmp_path, "litter") == -9
    assert len(list(folder.glob("*/*"))) == 1
    workers.close()
    assert list(folder.iterdir()) == []
