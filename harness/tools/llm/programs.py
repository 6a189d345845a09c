"""Tests of libraries as programs of a suite: what the main job asks about them (`harness.base.program.ProgramKind`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.model import ProgramModel
from harness.tools.llm.cases import LlmTask
from harness.tools.llm.mlc import MlcTask

if TYPE_CHECKING:
    from harness.base.case import Case
    from harness.base.plan import Job
    from harness.base.request import QuirkPolicy


@dataclass(frozen=True)
class Programs:
    """Tests of one kind of library."""

    task: type[LlmTask | MlcTask]
    run = "harness.tools.llm.run:run_program"

    def read_table(self, table: Mapping[str, Any], folder: Path) -> Sequence[ProgramModel]:
        """Return the programs of a table."""
        return [task.program() for task in self.task.of_table(table, folder)]

    def read_word(self, word: str) -> Sequence[ProgramModel]:
        """Return the programs of a word after `--model`."""
        return [task.program(word) for task in self.task.of_word(word)]

    def truth(self, program: ProgramModel) -> Job:
        """Return the job that computes the right answers, or names who judges."""
        return self.task.of(program).truth_job()

    def build(self, program: ProgramModel, case: Case, policy: QuirkPolicy, host_triple: str | None) -> Job:
        """Return the job that makes the library, or takes it into the store."""
        return self.task.of(program).library_job(policy, host_triple)

    def unsupported(self, program: ProgramModel, path: str) -> str:
        """Return why a path has no such programs; empty if it has."""
        return self.task.unsupported(path)


LLM, MLC = Programs(LlmTask), Programs(MlcTask)
