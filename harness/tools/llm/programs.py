"""Language models as programs of a suite: what the main job asks about them (`harness.base.program.ProgramKind`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.model import ProgramModel
from harness.tools.llm.cases import LlmTask, config_file, read_table, tasks_of
from harness.tools.llm.config import ZOO

if TYPE_CHECKING:
    from harness.base.case import Case
    from harness.base.plan import Job
    from harness.base.request import QuirkPolicy

UNSUPPORTED_PATHS = {
    "texture": "TVM's paged cache of keys and values, and its schedules for products, have no form for images",
    "clml": "TVM's offload to OpenCL ML for language models needs version 5 of its SDK, and takes nothing without it",
}
"""Why a path cannot run a language model."""


class LlmPrograms:
    """Tests of language models."""

    run = "harness.tools.llm.run:run_program"

    def read_table(self, table: Mapping[str, Any], folder: Path) -> Sequence[ProgramModel]:
        """Return the programs of a table."""
        return [task.program() for task in read_table(table, folder)]

    def read_word(self, word: str) -> Sequence[ProgramModel]:
        """Return the programs of a name, a `config.json`, or its folder."""
        is_llm = word in ZOO or config_file(word) is not None
        return [task.program(word) for task in tasks_of([word])] if is_llm else []

    def truth(self, program: ProgramModel) -> Job:
        """Return the job that computes the right answers."""
        from harness.tools.llm.truth import truth_job

        return truth_job(LlmTask.of(program))

    def build(self, program: ProgramModel, case: Case, policy: QuirkPolicy, host_triple: str | None) -> Job:
        """Return the job that makes the library."""
        from harness.tools.llm.build import library_job
        from harness.tools.llm.quirks import chosen_quirks

        return library_job(LlmTask.of(program), chosen_quirks(policy), host_triple)

    def unsupported(self, program: ProgramModel, path: str) -> str:
        """Return why a path has no such programs."""
        return UNSUPPORTED_PATHS.get(path, "")


PROGRAMS = LlmPrograms()
