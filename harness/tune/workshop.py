"""Builds what a search wants: the tasks of a network, LLVM's answers, and candidates, several at once."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from device_runner.failures import Failure
from harness.build.artifact import INPUTS, OUTPUTS, Answers, Artifact
from harness.build.candidate import FUNCTIONS, TRACE, told_tasks
from harness.build.keys import candidate_job, task_answer_job, tasks_job
from harness.build.oracle import load_arrays
from harness.build.pool import Builder
from harness.cases.suite import Limits
from harness.tune.search import UNTUNED, Task
from harness.tune.stand import Given

if TYPE_CHECKING:
    from harness.cases.plan import Plan

LONGEST_S = 60.0
"""Of a candidate's build. Most take a second; one that takes a minute is of no use."""

Candidate = tuple[Task, int]
"""A task, and the seed of a schedule for it."""


class Workshop:
    """What is built for one network. A context manager: candidates and answers are gone when it ends."""

    def __init__(self, plan: Plan, builder: Builder, limits: Limits) -> None:
        """`limits` are the suite's."""
        self._plan = plan
        self._limits = limits.model_copy(update={"build_s": min(LONGEST_S, limits.build_s)})
        self._builder = builder
        self._tasks = tasks_job(plan.compile)
        self._stack = ExitStack()
        self._answers: dict[str, Given | Failure] = {}
        self._functions = Path()

    def __enter__(self) -> Workshop:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="adreno-bench-tune-"))
        self._candidates = self._stack.enter_context(Builder(Path(folder), self._limits, forked=True))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def key(self) -> str:
        """Of the tasks: what was tried for them holds as long as it is the same."""
        return self._tasks.key

    def tasks(self) -> list[dict[str, Any]]:
        """The tasks of the network, as the build tells them. Raises the failure of the build."""
        found = self._builder.build([self._tasks])[self._tasks.key]
        if isinstance(found, Failure):
            raise found
        assert isinstance(found, Answers)
        self._functions = found.folder / FUNCTIONS
        return list(told_tasks(found.folder))

    def given(self, task: Task) -> Given | Failure:
        """What a task is run on, and LLVM's answer; or why there is none."""
        if task.task not in self._answers:
            job = task_answer_job(self._tasks, self._functions, task.name)
            self._answers[task.task] = self._read(self._candidates.build([job])[job.key])
        return self._answers[task.task]

    def _read(self, built: Artifact | Answers | Failure) -> Given | Failure:
        if isinstance(built, Failure):
            return built
        assert isinstance(built, Answers)
        inputs, expected = (load_arrays(built.folder / name) for name in (INPUTS, OUTPUTS))
        return Given(inputs, expected, self._plan.relative_tolerance)

    def build(self, candidates: Sequence[Candidate]) -> list[Artifact | Failure]:
        """The library of each candidate, or why there is none, in their order."""
        jobs = [
            candidate_job(self._tasks, self._functions, task.name, None if seed == UNTUNED else seed)
            for task, seed in candidates
        ]
        built = self._candidates.build(jobs)
        return [one for job in jobs if not isinstance(one := built[job.key], Answers)]


def trace_of(artifact: Artifact) -> list[Any]:
    """The schedule that a candidate has."""
    import json

    trace: list[Any] = json.loads((artifact.loadable.library.parent / TRACE).read_text(encoding="utf-8"))
    return trace
