"""The worker process: does one job (`harness.compile.artifacts.kinds`), and says in a file how it went.

A fork of `harness.compile.artifacts.fork_server`. The compiler may crash, hang or eat all memory: that is why it runs
here and not in the harness. Its memory is limited by the kernel (RLIMIT_AS), and it dies with the harness.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import logging
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from device_runner.disk import disk_full
from device_runner.failures import Failure, RigFailure
from device_runner.lifetime import die_with_parent
from device_runner.names import load
from harness.base.failures import CompileOutOfMemory, described
from harness.compile.artifacts.artifact import RESULT, STEP, CompileResult
from harness.compile.compiler.pass_runner import LOG
from harness.compile.models.limited_fork import limit_memory


def main(job_file: Path, parent: int) -> int:
    """Do the job and write `result.json` beside what it made: `{"done": ...}` or `{"failure": ...}`.

    `parent` is the process that forked this one.
    """
    job: dict[str, Any] = json.loads(job_file.read_text(encoding="utf-8"))
    die_with_parent(signal.SIGKILL, parent)  # where there is no such thing, our deadline ends us
    base_bytes = limit_memory(job["memory_bytes"])
    out = Path(job["out"])
    _tell_steps(out / STEP)
    try:
        function: Callable[..., CompileResult | dict[str, Any] | None] = load(job["place"])
        done = function(job, out)
        result = {"done": dataclasses.asdict(done) if isinstance(done, CompileResult) else done or {}}
    except Exception as error:  # whatever it is, the harness has to know
        failure = _out_of_memory(job, error, base_bytes) if _is_out_of_memory(error) else _failure_of(error, out)
        result = {"failure": described(failure)}
    (out / RESULT).write_text(json.dumps(result), encoding="utf-8")
    return 0


_NO_MEMORY = ("bad_alloc", "failed to map segment", "MemoryError")
"""What an error says that came of the limit on memory: in TVM, in a library that was loaded, in Python below TVM."""


def _failure_of(error: Exception, out: Path) -> Failure:
    """Return an error as the failure that it is, or comes of."""
    if not isinstance(error, Failure):
        error = disk_full(error, out.parent) or error
    if isinstance(error, Failure):
        error.evidence = error.evidence or traceback.format_exc()
        return error
    line = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return RigFailure(
        f"the worker failed: {type(error).__name__}: {line}",
        hint="this is a bug in adreno-bench: report it with the record",
        evidence=traceback.format_exc(),
    )


def _is_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an error, or one behind it, came of the limit: TVMScript's errors do not say what they hide."""
    while error is not None:
        refused = isinstance(error, OSError) and error.errno == errno.ENOMEM
        if refused or isinstance(error, MemoryError) or any(sign in str(error) for sign in _NO_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


def _out_of_memory(job: dict[str, Any], error: Exception, base_bytes: int) -> Failure:
    author, limit_bytes, peak_bytes = job["author"], job["memory_bytes"], _peak_bytes() - base_bytes
    message = f"{author} needs more than {limit_bytes / 1e9:.3g} GB of memory"
    hint = "raise limits.build_memory_gb in the suite file"
    if peak_bytes < limit_bytes / 2:  # one request for more than all before it is a size computed wrongly
        message = f"{author} asked at once for more than the rest of {limit_bytes / 1e9:.3g} GB of memory"
        message += f", with {peak_bytes / 1e9:.2g} GB in use"
        hint = "it computed a wrong size; a network that needs so much takes a higher limits.build_memory_gb"
    return CompileOutOfMemory(message, hint=hint, evidence=f"{type(error).__name__}: {error}")


def _peak_bytes() -> int:
    """Return how large the address space of this process was at most (proc(5))."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return next((int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmPeak:")), 0)


def _tell_steps(file: Path) -> None:
    """Leave the name of what the compiler does in a file: a process that crashes or hangs cannot tell any more."""

    class LastStep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            file.write_text(record.getMessage(), encoding="utf-8")

    LOG.setLevel(logging.INFO)
    LOG.addHandler(LastStep())
