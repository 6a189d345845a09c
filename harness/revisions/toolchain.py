"""Build and run cases with one revision of the compiler: the command line of its own environment, each time afresh.

So every session is a fresh process, server and connection, whichever revision's turn it is.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device_runner.failures import RigFailure
from device_runner.store import Store
from harness.build.artifact import KERNELS
from harness.cases.request import WORKED_AROUND, QuirkPolicy
from harness.cases.suite import load_suite
from harness.revisions.command_line import OPENING_S, CommandLine
from harness.revisions.sources import Revision
from harness.run.outcome import Outcome
from harness.run.record import Record, RecordFile

ATTEMPTS = 3
"""Sessions that a case may take until the device or the rig is not to blame for what came of it."""


@dataclass(frozen=True)
class RunOptions:
    """What is to be built and run, whatever the revision."""

    suite: Path
    device: str
    """The name of one."""
    quirks: QuirkPolicy = WORKED_AROUND
    schedules: Path | None = None
    """File of schedules in place of the one that the suite names."""

    @property
    def schedules_file(self) -> Path | None:
        """The file of schedules that holds. Raises UsageError."""
        return self.schedules or load_suite(self.suite).schedules

    @property
    def words(self) -> list[str]:
        """As the command line takes it."""
        shipped = ["--as-shipped"] if self.quirks.as_shipped else []
        quirks = [part for quirk in self.quirks.with_quirks for part in ("--with-quirk", quirk)]
        schedules = ["--schedules", str(self.schedules.absolute())] if self.schedules else []
        return ["--suite", str(self.suite.absolute()), "--device", self.device, *schedules, *shipped, *quirks]


@dataclass(frozen=True)
class Build:
    """What a revision made of a case."""

    case: str
    identity: str
    artifact: str
    library: str
    """SHA-256 of the library, empty if there is none."""
    outcome: Outcome
    message: str = ""
    quirks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Toolchain:
    """One revision, ready to be used."""

    revision: Revision
    python: Path
    harness: Path
    """Snapshot of this harness."""
    cache: Path
    options: RunOptions
    say: Callable[[str], None] = lambda _: None

    @classmethod
    def of(cls, revision: Revision, cache: Path, options: RunOptions, say: Callable[[str], None]) -> Toolchain:
        """Install the revision if it is not there. Raises NotInstallable."""
        line = CommandLine.of(revision, cache, say)
        return cls(revision, line.python, line.harness, cache, options, say)

    def build(self, cases: Sequence[str]) -> dict[str, Build]:
        """Compile cases; run nothing. Raises UsageError, RigFailure."""
        told = self._tell(["build", "--json"], cases)
        return {case: _build(told["identity"], found) for found in told["cases"] for case in [found["case"]]}

    def run(self, cases: Sequence[str]) -> list[Record]:
        """Run each case in a fresh session, and again, if the device or the rig is to blame for what came of it.

        Raises RigFailure if a case has no record in the end.
        """
        records: dict[str, Record] = {}
        pending, said = list(cases), ""
        for _ in range(ATTEMPTS):
            made, said = self._session(pending)
            records |= {record.case: record for record in made}
            pending = [case for case in cases if case not in records or not records[case].outcome.conclusive]
            if not pending:
                break
        if lost := [case for case in cases if case not in records]:
            raise RigFailure(f"{self.revision} left no record of {', '.join(lost)}: {said}", hint="run it again")
        return [records[case] for case in cases]

    def _session(self, cases: Sequence[str]) -> tuple[list[Record], str]:
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch) / "records.jsonl"
            _, _, said = self._call(["run", "--records", str(file)], cases)
            return RecordFile(file).load().records, said

    def _tell(self, command: Sequence[str], cases: Sequence[str]) -> dict[str, Any]:
        for _ in range(ATTEMPTS):
            code, text, said = self._call(command, cases)
            try:
                told: dict[str, Any] = json.loads(text)
                return told
            except ValueError:
                continue
        raise RigFailure(f"{self.revision} ended with code {code}: {said}", hint="run it again")

    def _call(self, command: Sequence[str], cases: Sequence[str]) -> tuple[int, str, str]:
        """Exit code, standard output, and the last line of the error stream. Raises UsageError for what is ours."""
        globs = [part for case in cases for part in ("--case", case)]
        deadline_s = OPENING_S + len(cases) * load_suite(self.options.suite).longest_case_s
        line = CommandLine(self.revision, self.python, self.harness, self.cache, self.say)
        return line.call([*command, *self.options.words, *globs], deadline_s)


def kernels(cache: Path, artifact: str) -> str:
    """OpenCL source of an artifact in the store; empty if the compiler made none, or if the artifact was pruned."""
    folder = Store(cache, "artifacts").find(artifact) if artifact else None
    file = folder / KERNELS if folder else None
    return file.read_text(encoding="utf-8") if file and file.exists() else ""


def _build(identity: str, found: dict[str, Any]) -> Build:
    return Build(
        case=found["case"],
        identity=identity,
        artifact=found["artifact"],
        library=found["library"],
        outcome=Outcome(found["outcome"]),
        message=found["message"],
        quirks=tuple(found["quirks"]),
    )
