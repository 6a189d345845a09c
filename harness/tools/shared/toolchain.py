"""Build and run cases with one revision: our command line in its environment, each time a fresh process.

So every session is a fresh process, server and connection, whichever revision's turn it is. What runs there is a copy
of this harness as it is now: an edit meanwhile changes no measurement.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from device_runner.failures import RigFailure
from device_runner.files import scratch_folder
from device_runner.store import Store, keep
from harness.base.failures import UsageError
from harness.base.model import Model, anchored, words_given
from harness.base.outcome import ExitCode, Outcome
from harness.base.process import Listener, bound, end_family
from harness.base.request import WORKED_AROUND, QuirkPolicy
from harness.base.suite import Suite, suite_of
from harness.compile.artifacts.keys import digest
from harness.compile.compiler.releases import HARNESS, harness_version
from harness.judge.history.releases import copy_files, source_files
from harness.measure.progress import STILL
from harness.measure.records.record import Record, RecordFile
from harness.tools.shared.environment import environment
from harness.tools.shared.revisions import Revision

PACKAGES = ("harness", "device_runner")
COPY_TIMEOUT_S = 120.0
OPENING_S = 900.0
"""Time limit for opening a device: the first time, this compiles the runtimes that a TVM wheel lacks."""
UNWIND_S = 30.0
"""Time limit for a command to end its server and put back knobs."""
LISTEN_S = 5.0
"""Time limit for the end of an error stream that a process may still hold open."""
_CODE = "from harness.cli import main; main()"
_CLOCK = re.compile(r"^\[ *[\d.]+ s\] ")
_NOT_PASSED_ON = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
ATTEMPTS = 3
"""Most sessions of a case whose outcome is the device's or the rig's fault."""


@functools.cache
def snapshot(cache: Path) -> Path:
    """Return a folder that, on an interpreter's path, makes this very harness importable there.

    Made once for its content, and looked at once in a process: all that it starts run the same.
    """
    root = Path(__file__).resolve().parents[3]
    files = source_files(root, PACKAGES)
    key = digest(root, files)

    def make(scratch: Path) -> None:
        copy_files(files, root, scratch)
        _describe(scratch)

    folder = Store(cache, "harness", sums=False).obtain(key, make, COPY_TIMEOUT_S)
    keep(folder)
    return folder


def _describe(folder: Path) -> None:
    """Write the metadata that `importlib.metadata` reads, because records name the harness's version."""
    about = folder / f"{HARNESS.replace('-', '_')}-{harness_version()}.dist-info"
    about.mkdir()
    text = f"Metadata-Version: 2.1\nName: {HARNESS}\nVersion: {harness_version()}\n"
    (about / "METADATA").write_text(text, encoding="utf-8")


@dataclass(frozen=True)
class RunOptions:
    """What is to be built and run, whatever the revision."""

    suite: Path
    device: str
    """The name of one."""
    quirks: QuirkPolicy = WORKED_AROUND
    schedules: Path | None = None
    """File of schedules in place of the one that the suite names."""
    models: tuple[Model, ...] = ()
    """What stands in place of the suite's models."""

    def read_suite(self) -> Suite:
        """Return the suite, with these models in place of its own. Raises UsageError."""
        return suite_of(self.suite, self.models)

    @property
    def schedules_file(self) -> Path | None:
        """The file of schedules that holds. Raises UsageError."""
        return self.schedules or self.read_suite().schedules

    @property
    def words(self) -> list[str]:
        """The command line's words for it."""
        models = words_given([anchored(model, Path.cwd()) for model in self.models])
        shipped = ["--as-shipped"] if self.quirks.as_shipped else []
        quirks = [part for quirk in self.quirks.with_quirks for part in ("--with-quirk", quirk)]
        schedules = ["--schedules", str(self.schedules.absolute())] if self.schedules else []
        return ["--suite", str(self.suite.absolute()), "--device", self.device, *models, *schedules, *shipped, *quirks]


@dataclass(frozen=True)
class CommandLine:
    """`adreno-bench`, with one revision."""

    revision: Revision
    python: Path
    harness: Path
    """Snapshot of this harness."""
    cache: Path
    say: Callable[[str], None] = lambda _: None

    @classmethod
    def of(cls, revision: Revision, cache: Path, say: Callable[[str], None]) -> CommandLine:
        """Install the revision if it is not there. Raises InstallFailure."""
        copied = snapshot(cache)  # it may refuse, which installing takes minutes to come to
        return cls(revision, environment(revision, cache, say), copied, cache, say)

    def call(self, words: Sequence[str], deadline_s: float) -> tuple[int, str, str]:
        """Run a command; return exit code, standard output, and the last line of the error stream.

        Raises UsageError for what is ours, RigFailure at the deadline.
        """
        with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
            process = subprocess.Popen(
                [str(self.python), *bound(_CODE), *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.PIPE,
                env=self._environment(),
                start_new_session=True,
                text=True,
            )
            assert process.stderr
            heard = Listener(process.stderr, self._report)
            try:
                code = process.wait(deadline_s)
            except subprocess.TimeoutExpired:
                why = f"{self.revision} did not end within {deadline_s:.0f} s"
                raise RigFailure(why, hint="run it again", evidence=heard.last) from None
            finally:
                _end(process)
                heard.join(LISTEN_S)
            output.seek(0)
            if code == ExitCode.USAGE:
                raise UsageError(heard.last.removeprefix("adreno-bench: "))
            return code, output.read(), heard.last

    def _report(self, line: str) -> None:
        """Report its progress, without its own clock and repeated lines."""
        text = _CLOCK.sub("", line.strip()).removeprefix(STILL)
        if text and not text.startswith("opening "):
            self.say(f"{self.revision}: {text}")

    def _environment(self) -> dict[str, str]:
        variables = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
        return {**variables, "PYTHONPATH": str(self.harness), "ADRENO_BENCH_CACHE": str(self.cache)}


@dataclass(frozen=True)
class CaseBuild:
    """What a revision made of a case."""

    case: str
    identity: str
    artifact: str
    library: str
    """SHA-256 of the library, empty if there is none."""
    outcome: Outcome
    message: str = ""
    quirks: tuple[str, ...] = ()
    emulated: tuple[str, ...] = ()
    """What of the device is not the real thing."""


@dataclass(frozen=True)
class Toolchain:
    """One revision, ready to be used."""

    commands: CommandLine
    options: RunOptions

    @classmethod
    def of(cls, revision: Revision, cache: Path, options: RunOptions, say: Callable[[str], None]) -> Toolchain:
        """Install the revision if it is not there. Raises InstallFailure."""
        return cls(CommandLine.of(revision, cache, say), options)

    def build(self, cases: Sequence[str]) -> dict[str, CaseBuild]:
        """Compile cases; run nothing. Raises UsageError, RigFailure."""
        facts = self._ask(["build", "--json"], cases)
        device = {name: facts[name] for name in ("identity", "emulated")}
        builds = msgspec.convert([fields | device for fields in facts["cases"]], list[CaseBuild])
        return {build.case: build for build in builds}

    def run(self, cases: Sequence[str], *, quick: bool = False) -> list[Record]:
        """Run each case in a fresh session, and again if the device or the rig is to blame for its outcome.

        A `quick` run takes the fewest samples, for the outcome alone. Raises RigFailure if a case has no record in the
        end.
        """
        records: dict[str, Record] = {}
        pending, message = list(cases), ""
        for _ in range(ATTEMPTS):
            session, message = self._session(pending, quick=quick)
            records |= {record.case: record for record in session}
            pending = [case for case in cases if case not in records or not records[case].outcome.conclusive]
            if not pending:
                break
        if lost := [case for case in cases if case not in records]:
            raise RigFailure(
                f"{self.commands.revision} left no record of {', '.join(lost)}: {message}", hint="run it again"
            )
        return [records[case] for case in cases]

    def profile(self, case: str, repeat: int) -> str:
        """Return the profile of a case as JSON, in a fresh session. Raises UsageError, RigFailure."""
        code, text, message = self._call(["profile", "--json", "--repeat", str(repeat)], [case])
        if code:
            raise RigFailure(message.removeprefix("adreno-bench: "), hint="run it again")
        return text

    def _session(self, cases: Sequence[str], *, quick: bool) -> tuple[list[Record], str]:
        with scratch_folder() as scratch:
            file = scratch / "records.jsonl"
            _, _, message = self._call(["run", "--records", str(file), *(["--quick"] if quick else [])], cases)
            return RecordFile(file).load().records, message

    def _ask(self, command: Sequence[str], cases: Sequence[str]) -> dict[str, Any]:
        for _ in range(ATTEMPTS):
            code, text, message = self._call(command, cases)
            try:
                facts: dict[str, Any] = json.loads(text)
                return facts
            except ValueError:
                continue
        raise RigFailure(f"{self.commands.revision} ended with code {code}: {message}", hint="run it again")

    def _call(self, command: Sequence[str], cases: Sequence[str]) -> tuple[int, str, str]:
        """Exit code, standard output, and the last line of the error stream. Raises UsageError for what is ours."""
        globs = [part for case in cases for part in ("--case", case)]
        deadline_s = OPENING_S + len(cases) * self.options.read_suite().longest_case_s
        return self.commands.call([*command, *self.options.words, *globs], deadline_s)


def _end(process: subprocess.Popen[str]) -> None:
    """End a command that still runs: ask it, so that it puts back what it changed; then kill it."""
    if process.poll() is None:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(UNWIND_S)
        end_family(process.pid)
    process.wait()
