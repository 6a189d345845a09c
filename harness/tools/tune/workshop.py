"""Builds what a search wants: the tasks of a network, LLVM's answers, and candidates, several at once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from device_runner.failures import Failure
from device_runner.files import scratch_folder
from device_runner.store import key_of
from harness.base.plan import Job, Plan
from harness.base.suite import Limits
from harness.compile.artifacts.artifact import Answers, Artifact
from harness.compile.artifacts.keys import ROOT, digest, module_version
from harness.compile.artifacts.pool import Builder
from harness.compile.compiler.releases import versions
from harness.compile.schedules.database import ThreadLimits
from harness.measure.correctness import Truth
from harness.measure.work import load_truth
from harness.tools.tune.candidate import FUNCTIONS, TASKS, TRACE
from harness.tools.tune.search import UNTUNED, Task

LONGEST_S = 60.0
"""Longest build of a candidate in seconds. Most take one second; one that takes a minute is useless."""

_DRAWING = [ROOT / "harness/tools/tune/drawing.py", ROOT / "harness/compile/schedules/spaces.py"]
"""Our sources that decide which schedule belongs to a seed."""

Candidate = tuple[Task, int]
"""A task, and the seed of a schedule for it."""


class Workshop:
    """What is built for one network. A context manager: candidates and answers are gone when it ends."""

    def __init__(self, plan: Plan, builder: Builder, limits: Limits, threads: ThreadLimits) -> None:
        """`limits` are the suite's, `threads` the device's."""
        self._plan = plan
        self._threads = threads
        self._limits = limits.model_copy(update={"build_s": min(LONGEST_S, limits.build_s)})
        self._builder = builder
        key = key_of({"tasks": plan.compile.key, "sources": module_version("harness.tools.tune.candidate")})
        self._tasks = Job("tasks", key, f"tasks of {plan.compile.title}", plan.compile.payload)
        self._stack = ExitStack()
        self._answers: dict[str, Future[Any]] = {}
        self._truths: dict[str, Truth | Failure] = {}
        self._functions = Path()

    def __enter__(self) -> Workshop:
        folder = self._stack.enter_context(scratch_folder())
        self._candidates = self._stack.enter_context(Builder(folder, self._limits))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def tasks(self) -> list[dict[str, Any]]:
        """Return the tasks of the network, as the build tells them. Raises the failure of the build."""
        answers = self._builder.build([self._tasks])[self._tasks.key]
        if isinstance(answers, Failure):
            raise answers
        assert isinstance(answers, Answers)
        self._functions = answers.folder / FUNCTIONS
        tasks: list[dict[str, Any]] = json.loads((answers.folder / TASKS).read_text(encoding="utf-8"))
        return tasks

    def trials_key(self, tasks: Sequence[Mapping[str, Any]]) -> str:
        """Return the key of trials, which stay valid while it is the same, even if the harness changes."""
        request = self._tasks.payload["request"]
        facts = {name: request[name] for name in ("path", "quirks", "host_triple")}
        allowed = [self._plan.relative_tolerance, self._plan.rounding_factor]
        names = sorted({str(entry["task"]) for entry in tasks})
        return key_of(
            {
                **facts,
                **versions(),
                "tasks": names,
                "threads": asdict(self._threads),
                "seeds": digest(ROOT, _DRAWING),
                "allowed": allowed,
            }
        )

    def truth(self, task: Task) -> Truth | Failure:
        """Return what a task is run on, and LLVM's answer; or why there is none."""
        if task.task not in self._truths:
            self._truths[task.task] = self._read(self._answer(task).result())
        return self._truths[task.task]

    def _answer(self, task: Task) -> Future[Any]:
        if task.task not in self._answers:
            key = key_of({"answer": self._tasks.key, "name": task.name})
            payload = {"functions": str(self._functions), "name": task.name}
            self._answers[task.task] = self._candidates.begin(
                Job("task-answer", key, f"answer for {task.name}", payload)
            )
        return self._answers[task.task]

    def _read(self, built: Artifact | Answers | Failure) -> Truth | Failure:
        if isinstance(built, Failure):
            return built
        assert isinstance(built, Answers)
        plan = self._plan
        return load_truth(built.folder, plan.relative_tolerance, plan.rounding_factor, plan.case.precision)

    def begin(self, candidate: Candidate) -> Future[Any]:
        """Build a candidate, and what it is judged by, while others run: an Artifact, or a Failure."""
        task, seed = candidate
        self._answer(task)
        drawn = None if seed == UNTUNED else seed
        choice = {"name": task.name, "seed": drawn, "limits": asdict(self._threads)}
        payload = {**self._tasks.payload, "functions": str(self._functions), **choice}
        key = key_of({"candidate": self._tasks.key, **choice})
        return self._candidates.begin(Job("candidate", key, f"{task.name} {drawn}", payload))

    def build(self, candidates: Sequence[Candidate]) -> list[Artifact | Failure]:
        """Return the library of each candidate, or why there is none, in their order."""
        return [future.result() for future in list(map(self.begin, candidates))]


def trace_of(artifact: Artifact) -> list[Any]:
    """Return the schedule that a candidate has."""
    trace: list[Any] = json.loads((artifact.loadable.library.parent / TRACE).read_text(encoding="utf-8"))
    return trace
