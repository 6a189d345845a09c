"""A process ends with the one that started it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from waiting import gone

from device_runner.lifetime import dying_with_parent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")

SLEEPER = [sys.executable, "-c", "import os, time; print(os.getpid(), flush=True); time.sleep(60)"]


@contextmanager
def killed_after_its_child_spoke(code: str) -> Iterator[int]:
    """The pid that is printed by the child of a process that runs `code`; that process is killed then."""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    yield pid


def test_a_command_dies_with_who_started_it() -> None:
    code = (
        "import subprocess; from device_runner.lifetime import dying_with_parent\n"
        f"subprocess.Popen(dying_with_parent({SLEEPER!r})).wait()"
    )
    with killed_after_its_child_spoke(code) as pid:
        assert gone(pid)


def test_a_command_that_is_bound_is_the_command_itself() -> None:
    command = dying_with_parent(["/bin/sh", "-c", "echo $0 $PPID; exit 7", "name"])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout.split(), done.returncode) == (["name", str(os.getpid())], 7)


def test_who_is_not_our_parent_has_died_before_we_asked() -> None:
    """Between the start of a process and its call, the parent may be gone, and another one in its place."""
    code = "import sys; from device_runner.lifetime import die_with_parent as die; die(9, int(sys.argv[1])); print(1)"
    for parent, expected in ((os.getpid(), (0, "1\n")), (os.getppid(), (-signal.SIGKILL, ""))):
        done = subprocess.run([sys.executable, "-c", code, str(parent)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == expected
