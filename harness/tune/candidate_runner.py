"""Runs single tasks on the device, one library after the other in one session.

Each is judged before it is timed. A process in which one ended badly is replaced, so that it costs itself alone.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, TypeVar

from device_runner.failures import Failure, KernelBuildFailure, PathFailure, ProgramFailure
from harness.build.candidate import TASK
from harness.run.correctness import compare_answers

if TYPE_CHECKING:
    from device_runner.device import Array, Device, Launch, Program, Session
    from harness.build.artifact import Artifact

T = TypeVar("T")
MOST_S = 60.0
"""Of one call to the device: most goes into compiling a kernel, and one that takes longer is worth nothing."""
PROGRAMS = 100
"""After so many a process is replaced: each leaves a little behind."""
REPEAT, TIMED_MS = 10, 300.0
"""Inferences that are timed: so many, or as many as last so long."""
FAR_BEHIND = 1.5
"""A candidate that takes so many times as long as the best is timed once."""
_MINE = re.compile(rf"{TASK}_kernel(_\d+)?")


@dataclass(frozen=True)
class Given:
    """What a task is run on, LLVM's answer to it, and how far off another may be."""

    inputs: Sequence[Array]
    expected: Sequence[Array]
    relative_tolerance: float


class Wrong(PathFailure):
    """A candidate's answer is not LLVM's. It is never timed."""

    outcome = "wrong-result"


@dataclass(frozen=True)
class Timed:
    """A task that was right: the time of its kernels in one call, and its error over the peak of the answer."""

    ms: float
    max_rel_err: float


class Stand:
    """One session of the device, for as long as nothing goes wrong. A context manager."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._stack = contextlib.ExitStack()
        self._session: Session | None = None
        self._ran = 0
        self.busy_s = 0.0
        """In which the device loaded, compiled and ran tasks, or came back after one."""

    def __enter__(self) -> Stand:
        return self

    def __exit__(self, *_: object) -> None:
        self.fresh()

    def fresh(self) -> None:
        """End the session; what follows begins another."""
        self._session, self._ran = None, 0
        with contextlib.suppress(Failure):  # of a process that is to end anyway
            self._stack.close()

    def make_room(self, programs: int) -> None:
        """See that so many can be loaded side by side, in one session."""
        if self._ran + programs > PROGRAMS:
            self.fresh()

    def time(self, artifact: Artifact, given: Given, best_ms: float | None = None) -> Timed:
        """Judge a task, and time it if it is right. Raises `Wrong`, PathFailure, and what is the device's or the rig's.

        One that is far behind `best_ms` is timed once, to know how far.
        """
        return self._guarded(lambda: self._time(artifact, given, best_ms))

    def load(self, artifact: Artifact, given: Given) -> tuple[Program, float]:
        """A task that is right, loaded and warm, and its error. Raises as `time` does."""
        return self._guarded(lambda: self._load(artifact, given))

    def _guarded(self, act: Callable[[], T]) -> T:
        began = time.monotonic()
        try:
            if self._ran >= PROGRAMS:
                self.fresh()
            return act()
        except KernelBuildFailure:
            raise  # nothing of it ran
        except Failure:
            self.fresh()
            raise
        finally:
            self.busy_s += time.monotonic() - began

    def _time(self, artifact: Artifact, given: Given, best_ms: float | None) -> Timed:
        program, error = self._load(artifact, given)
        first = kernels_ms(program, 1)
        if best_ms is not None and first > FAR_BEHIND * best_ms:
            return Timed(first, error)
        return Timed(kernels_ms(program, repeats(first)), error)

    def _load(self, artifact: Artifact, given: Given) -> tuple[Program, float]:
        if self._session is None:
            self._session = self._stack.enter_context(self._device.session({}, timeout_s=MOST_S))
        self._ran += 1
        program = self._session.load(artifact.loadable, timeout_s=MOST_S)
        outputs, _ = program.run(given.inputs, timeout_s=MOST_S)
        judged = compare_answers(outputs, given.expected, given.relative_tolerance)
        if not judged.right:
            raise Wrong(judged.complaint)
        return program, judged.max_rel_err


def repeats(ms: float) -> int:
    """How many inferences of so many ms are timed."""
    return max(1, min(REPEAT, int(TIMED_MS / max(ms, 1e-3))))


def kernels_ms(program: Program, repeat: int) -> float:
    """The time of the task's own kernels in one call, without the copies beside it: the median of so many.

    Raises ProgramFailure, which costs this candidate alone, if the probe saw none of its launches.
    """
    if not (seen := program.launches(repeat, timeout_s=MOST_S)):
        raise ProgramFailure("no launch of its kernels was seen")
    return median(map(_mine_ms, seen))


def _mine_ms(launches: Sequence[Launch]) -> float:
    mine = (launch for launch in launches if _MINE.fullmatch(launch.kernel))
    return sum((launch.end_ns - launch.start_ns) / 1e6 for launch in mine)
