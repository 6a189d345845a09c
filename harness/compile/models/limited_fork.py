"""Work on a file that may come from anywhere, in a fork of this process that has limits of its own.

The fork ends at its deadline, at its limit of memory, and with us; Ctrl-C ends it as well. It costs some milliseconds,
where a process that imports ONNX anew takes half a second. It is a limit, and no sandbox.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import resource
import select
import signal
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TypeVar

from device_runner.deadline import Deadline
from device_runner.failures import Failure
from device_runner.lifetime import die_with_parent
from harness.base.failures import ModelError

T = TypeVar("T")

DEADLINE_S = 300.0
MEMORY_BYTES = 8 << 30
"""Most memory of the worker, beyond what this process has already."""
CHUNK_BYTES = 1 << 20
HINT = "is it what it should be?"

_lock = threading.Lock()
"""Between making a pipe and closing our copy of its end: no other fork may have one."""


def run_limited(
    file: Path, work: Callable[[], T], *, deadline_s: float = DEADLINE_S, memory_bytes: int = MEMORY_BYTES
) -> T:
    """Return what `work` returns about a file.

    Raises the `Failure` that it raises, `ModelError` for whatever else ends it.
    """
    with _lock:
        answers, answer = os.pipe()
        parent = os.getpid()
        if not (worker := os.fork()):
            os.close(answers)
            _work(file, work, answer, parent, memory_bytes)
        os.close(answer)
    try:
        data = _read(answers, Deadline(deadline_s))
    except TimeoutError:
        raise ModelError(f"{file} could not be prepared within {deadline_s:.0f} s", hint=HINT) from None
    finally:
        os.close(answers)
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
        status = os.waitpid(worker, 0)[1]
    if not data:
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status >> 8}"
        raise ModelError(f"the process that prepared {file} died: {name}", hint=HINT)
    result, failure = pickle.loads(data)  # noqa: S301 - our own code wrote it
    if failure:
        raise failure
    return result  # type: ignore[no-any-return]


def _read(answers: int, deadline: Deadline) -> bytes:
    """Return all that arrives. Raises TimeoutError at the deadline."""
    pieces: list[bytes] = []
    while True:
        if not select.select([answers], [], [], deadline.remaining_s)[0]:
            raise TimeoutError
        if not (piece := os.read(answers, CHUNK_BYTES)):
            return b"".join(pieces)
        pieces.append(piece)


def _work(file: Path, work: Callable[[], object], answer: int, parent: int, memory_bytes: int) -> NoReturn:
    """Live as the fork."""
    code = 1
    try:
        for signum in (signal.SIGINT, signal.SIGTERM):  # the parent's handlers are about the parent
            signal.signal(signum, signal.SIG_DFL)
        faulthandler.disable()
        die_with_parent(signal.SIGKILL, parent)
        limit_memory(memory_bytes)
        result = pickle.dumps(_result_of(file, work), pickle.HIGHEST_PROTOCOL)
        with open(answer, "wb") as out:
            out.write(result)
        code = 0
    finally:
        os._exit(code)


def _result_of(file: Path, work: Callable[[], object]) -> tuple[object, Failure | None]:
    """Return a result or a failure."""
    try:
        return work(), None
    except Failure as failure:
        return None, failure
    except MemoryError:
        return None, ModelError(f"{file} takes too much memory to be prepared", hint=HINT)
    except Exception as error:  # ONNX and protobuf raise errors of every kind about a file that is damaged
        line = next((line for line in str(error).splitlines() if line.strip()), "")
        message = f"{file} cannot be prepared: {type(error).__name__}: {line:.300}"
        return None, ModelError(message, hint="export it again", evidence=traceback.format_exc())


def limit_memory(more_bytes: int) -> int:
    """Limit what this process may add to its address space; return what it has now.

    Libraries reserve what they never use: with a torch for CUDA beside TVM, `import tvm` takes 17 GB of addresses.
    """
    now_bytes = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = now_bytes + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return now_bytes
