"""Jobs of a search, each under a key of all that decides its result."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from device_runner.store import key_of
from harness.base.plan import Job
from harness.compile.artifacts.keys import ROOT, digest, module_version
from harness.compile.schedules.database import ThreadLimits


def tasks_job(compiled: Job) -> Job:
    """Return the job that finds the tasks of the network that another job compiles."""
    key = key_of({"tasks": compiled.key, "sources": module_version("harness.tools.tune.candidate")})
    return Job("tasks", key, f"tasks of {compiled.title}", compiled.payload)


def task_answer_job(tasks: Job, functions: Path, name: str) -> Job:
    """Return the job that asks LLVM for one task's answer. `functions` is a file of what the tasks' job made."""
    payload = {"functions": str(functions), "name": name}
    return Job("task-answer", key_of({"answer": tasks.key, "name": name}), f"answer for {name}", payload)


def candidate_job(tasks: Job, functions: Path, name: str, seed: int | None, limits: ThreadLimits) -> Job:
    """Return the job that builds one task with the schedule of a seed within a device's limits.

    TVM's own if it is None.
    """
    choice = {"name": name, "seed": seed, "limits": asdict(limits)}
    key = key_of({"candidate": tasks.key, **choice})
    return Job("candidate", key, f"{name} {seed}", {**tasks.payload, "functions": str(functions), **choice})


def seeds_digest() -> str:
    """Hash our sources that decide which schedule belongs to a seed."""
    return digest(ROOT, [ROOT / "harness/tools/tune/drawing.py", ROOT / "harness/compile/schedules/spaces.py"])
