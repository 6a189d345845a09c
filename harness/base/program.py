"""Programs that only a tool reads, builds and runs, as models of a suite: with several functions, say, and state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from device_runner.names import load
from harness.base.tool import places

if TYPE_CHECKING:
    from harness.base.case import Case
    from harness.base.model import Model, ProgramModel
    from harness.base.plan import Job
    from harness.base.request import QuirkPolicy


class ProgramKind(Protocol):
    """What a tool does with its programs (`Tool.programs`)."""

    run: str
    """Place of what carries a case to its record, as `harness.measure.loop.run_case` does others."""

    def read_table(self, table: Mapping[str, Any], folder: Path) -> Sequence[ProgramModel]:
        """Return the programs of a table in a suite's `models`, whose folder is given. Raises UsageError."""

    def read_word(self, word: str) -> Sequence[ProgramModel]:
        """Return the programs that a word after `--model` means; none if it means others. Raises UsageError."""

    def truth(self, program: ProgramModel) -> Job:
        """Return the job that finds out the right answers. Its payload has the hash of the `network`."""

    def build(self, program: ProgramModel, case: Case, policy: QuirkPolicy, host_triple: str | None) -> Job:
        """Return the job that makes the library. Its payload has the ids of the `quirks` that are worked around."""

    def unsupported(self, program: ProgramModel, path: str) -> str:
        """Return why it cannot be on a path; empty if it can."""


def program_kind(name: str) -> ProgramKind:
    """Return what a tool does with programs of this kind."""
    kind: ProgramKind = load(dict(places("programs"))[name])
    return kind


@cache
def programs_named(word: str) -> tuple[ProgramModel, ...]:
    """Return the programs that a word after `--model` means; none if it means a network. Raises UsageError."""
    kinds = (program_kind(name) for name, _ in places("programs"))
    return tuple(program for kind in kinds for program in kind.read_word(word))


def with_programs(models: Sequence[Model]) -> list[Model]:
    """Return the models of a command line with programs in place of words that mean some. Raises UsageError."""
    read: list[Model] = []
    for model in models:
        programs = programs_named(model) if isinstance(model, str) else ()
        read += programs or [model]
    return read


def read_programs(models: Sequence[Any], folder: Path) -> list[Any]:
    """Return the models of a suite file in a folder, with programs in place of tables and names that mean some.

    Raises UsageError.
    """
    read: list[Any] = []
    for model in models:
        programs: Sequence[ProgramModel] = ()
        if isinstance(model, dict):
            names = [name for name, _ in places("programs") if name in model]
            programs = program_kind(names[0]).read_table(model, folder) if names else ()
        elif isinstance(model, str) and model.isidentifier():  # paths are relative to the suite, not to this folder
            programs = [program.model_copy(update={"word": ""}) for program in programs_named(model)]
        read += programs or [model]
    return read
