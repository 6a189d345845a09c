"""The command line of this harness in the environment of one revision of the compiler, each time a fresh process."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from device_runner.failures import RigFailure
from harness.failures import UsageError
from harness.process import Listener, bound, end
from harness.revisions.environment import environment
from harness.revisions.snapshot import snapshot
from harness.revisions.sources import Revision
from harness.run.outcome import ExitCode
from harness.run.progress import STILL

OPENING_S = 900.0
"""For opening a device: the first time with a release of TVM, this compiles the runtimes that its wheel lacks."""
LISTEN_S = 5.0
"""For the end of an error stream that something may still hold open."""
_CODE = "from harness.cli import main; main()"
_CLOCK = re.compile(r"^\[ *[\d.]+ s\] ")
_NOT_PASSED_ON = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


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
        """Install the revision if it is not there. Raises NotInstallable."""
        copied = snapshot(cache)  # it may refuse, which installing takes minutes to come to
        return cls(revision, environment(revision, cache, say), copied, cache, say)

    def call(self, words: Sequence[str], deadline_s: float) -> tuple[int, str, str]:
        """Exit code, standard output, and the last line of the error stream.

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
                end(process)
                heard.join(LISTEN_S)
            output.seek(0)
            if code == ExitCode.USAGE:
                raise UsageError(heard.last.removeprefix("adreno-bench: "))
            return code, output.read(), heard.last

    def _report(self, line: str) -> None:
        """What it says of itself, less its own clock and what it says each time."""
        text = _CLOCK.sub("", line.strip()).removeprefix(STILL)
        if text and not text.startswith("opening "):
            self.say(f"{self.revision}: {text}")

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}
        return {**kept, "PYTHONPATH": str(self.harness), "ADRENO_BENCH_CACHE": str(self.cache)}
