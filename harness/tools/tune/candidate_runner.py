"""Runs single tasks on the device, one library after the other in one session.

Each is judged before it is timed. A process in which one ended badly is replaced, so that it costs itself alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from device_runner.device import Device, Launch, Program, Session
from device_runner.failures import Failure, KernelBuildFailure, PathFailure, ProgramFailure
from harness.base.outcome import Outcome
from harness.compile.artifacts.artifact import Artifact
from harness.measure.correctness import Truth
from harness.measure.decide import decide
from harness.measure.facts import Accuracy, Facts
from harness.measure.probes.base import Probe
from harness.tools.shared.shared_session import SharedSession
from harness.tools.tune.candidate import TASK

MOST_S = 60.0
"""Timeout of one call to the device, in seconds. Compiling a kernel takes most of it; slower kernels are useless."""
PROGRAMS = 100
"""Number of programs after which a process is replaced: each leaves a little memory behind."""
REPEAT, TIMED_MS = 10, 300.0
"""Inferences that are timed: so many, or as many as last so long."""
FAR_BEHIND = 1.5
"""A candidate that takes so many times as long as the best is timed once."""
_MINE = re.compile(rf"{TASK}_kernel(_\d+)?")


class WrongAnswer(PathFailure):
    """A candidate's answer is not LLVM's. It is never timed."""

    outcome = "wrong-result"


@dataclass(frozen=True)
class TaskTiming:
    """A task that was right: the time of its kernels in one call, and its error over the peak of the answer."""

    ms: float
    max_rel_err: float


@dataclass(frozen=True)
class TaskProbe:
    """Times the kernels of a task; once, if it is far behind the best of its task so far."""

    best_ms: float | None
    step = ""
    timed = True

    def __call__(self, program: Program, session: Session, facts: Facts) -> Iterator[TaskTiming]:
        """Watch the launches of some inferences."""
        first_ms = kernels_ms(program, 1)
        far_behind = self.best_ms is not None and first_ms > FAR_BEHIND * self.best_ms
        ms = first_ms if far_behind else kernels_ms(program, repeats(first_ms))
        yield TaskTiming(ms, facts[Accuracy].max_rel_err)


class CandidateRunner(SharedSession):
    """One session of the device, for as long as nothing goes wrong."""

    def __init__(self, device: Device) -> None:
        super().__init__(device, PROGRAMS, MOST_S)
        self.busy_s = 0.0
        """Seconds in which the device loaded, compiled and ran tasks, or recovered after one."""

    def time(self, artifact: Artifact, truth: Truth, best_ms: float | None = None) -> TaskTiming:
        """Judge a task, and time it if it is right. Raises `WrongAnswer`, PathFailure, and failures of device and rig.

        One that is far behind `best_ms` is timed once, to know how far.
        """
        facts = Facts()
        self._run(artifact, truth, [TaskProbe(best_ms)], facts)
        return facts[TaskTiming]

    def load(self, artifact: Artifact, truth: Truth) -> tuple[Program, float]:
        """Return a task that is right, loaded and warm, and its error. Raises as `time` does."""
        facts = Facts()
        program = self._run(artifact, truth, (), facts)
        return program, facts[Accuracy].max_rel_err

    def _run(self, artifact: Artifact, truth: Truth, probes: Sequence[Probe], facts: Facts) -> Program:
        began = time.monotonic()
        try:
            program = self.measure(artifact.loadable, truth, probes, facts)
            if (decision := decide(facts)).outcome is not Outcome.OK:
                raise WrongAnswer(decision.message)
            return program
        except KernelBuildFailure:
            raise  # nothing of it ran
        except Failure:
            self.end()
            raise
        finally:
            self.busy_s += time.monotonic() - began


def repeats(ms: float) -> int:
    """Return how many inferences of so many ms are timed."""
    return max(1, min(REPEAT, int(TIMED_MS / max(ms, 1e-3))))


def kernels_ms(program: Program, repeat: int) -> float:
    """Return the time of the task's own kernels in one call, without the copies beside it: the median of so many.

    Raises ProgramFailure, which costs this candidate alone, if the probe saw none of its launches.
    """
    if not (launches := program.launches(repeat, timeout_s=MOST_S)):
        raise ProgramFailure("no launch of its kernels was seen")
    return median(map(_mine_ms, launches))


def _mine_ms(launches: Sequence[Launch]) -> float:
    mine = (launch for launch in launches if _MINE.fullmatch(launch.kernel))
    return sum((launch.end_ns - launch.start_ns) / 1e6 for launch in mine)
