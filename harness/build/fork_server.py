"""A process that loads the compiler once and forks for each job; started by `harness.build.starters.ForkStarter`.

Run as `python -m harness.build.fork_server PARENT`. Each line on standard input is a JSON array of a job's file and its
log; the answer is the exit code of the fork that did it, negative after a signal. It has one thread, so that a fork has
all of it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path

from device_runner.lifetime import die_with_parent
from harness.build import worker

LOADED = (
    "harness.build.candidate",
    "harness.build.compile",
    "harness.build.oracle",
    "onnx.reference",
    "tvm.relax.backend.adreno.pipeline",
    "tvm.relax.frontend.onnx",
    "tvm.s_tir.backend.adreno.pipeline",
    "tvm.s_tir.dlight",
)
"""What a job imports. What a release of TVM does not have is left to the job."""
NICE = 10
"""Many small jobs are built while others run: what is timed meanwhile, on this machine's own CPU too, comes first."""


def main(parent: int) -> int:
    """Serve until standard input ends."""
    die_with_parent(signal.SIGKILL, parent)
    os.nice(NICE)
    for name in LOADED:
        try:
            importlib.import_module(name)
        except Exception as error:
            sys.stderr.write(f"{name}: {error}\n")
    for line in sys.stdin.buffer:
        job_file, log = json.loads(line)
        sys.stdout.write(f"{_forked(Path(job_file), Path(log))}\n")
        sys.stdout.flush()
    return 0


def _forked(job_file: Path, log: Path) -> int:
    """Do a job in a fork; its exit code."""
    server = os.getpid()
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        _redirect(log)
        code = worker.main(job_file, server)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _redirect(log: Path) -> None:
    """Nothing is read, and all that is printed goes to the log."""
    nothing, output = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    for number, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(number, target)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
