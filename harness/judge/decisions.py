"""Decisions in turns, kept for the history: there a step is a suspicion until fresh sessions decided it.

    .asv/confirmed.jsonl

`gate`, `compare` and `bisect` add a JSON line for each case that they decided in turns; `history` reads them. An end of
a decision is known by the artifact that was measured, or by the revision that a person named.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import msgspec

from device_runner.files import append_lines
from harness.base.failures import reason_alone
from harness.base.terminal import tell
from harness.judge.verdict import Verdict

FILE = Path(".asv/confirmed.jsonl")
"""File of the decisions, in the working directory."""
SHORTEST_REVISION = 7
"""Fewest digits that identify a commit."""


class MeasuredBuild(msgspec.Struct, frozen=True):
    """One build that was measured."""

    artifact: str = ""
    revision: str = ""
    """A release of TVM, or the digits of a commit; empty if none was named."""

    def is_of(self, artifact: str, commit: str, release: str) -> bool:
        """Return whether it is the build of a commit, or of the release that was measured there."""
        if self.artifact and self.artifact == artifact:
            return True
        named = len(self.revision) >= SHORTEST_REVISION and commit.startswith(self.revision)
        return bool(self.revision) and (named or self.revision == release)


class PairedDecision(msgspec.Struct, frozen=True):
    """One decision in turns. Relative numbers are fractions of base; None if not known."""

    identity: str
    case: str
    as_shipped: bool
    verdict: Verdict
    base: MeasuredBuild
    head: MeasuredBuild
    relative: float | None = None
    low: float | None = None
    high: float | None = None
    sessions: int = 0
    clock: str = "wall_ms"
    by: str = ""
    """The command that decided it."""
    day: str = ""


class DecisionFile(NamedTuple):
    """What a file holds, oldest first, and which of its lines could not be read."""

    decisions: Sequence[PairedDecision]
    skipped: Sequence[str]


def today() -> str:
    """Today's date in UTC, as the file has it."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%d")


def keep(decisions: Sequence[PairedDecision], file: Path = FILE) -> None:
    """Add decisions to a file, or say that it failed; the decisions stand without it."""
    lines = b"".join(msgspec.json.encode(decision) + b"\n" for decision in decisions)
    try:
        if lines:
            append_lines(file, lines)
    except OSError as error:
        tell(f"adreno-bench: what was decided in turns is not kept for the history: {error}")


def load(file: Path = FILE) -> DecisionFile:
    """Read a file; empty if there is none. Names and skips torn or foreign lines."""
    decisions: list[PairedDecision] = []
    skipped: list[str] = []
    try:
        lines = file.read_bytes().splitlines() if file.exists() else []
    except OSError as error:
        return DecisionFile([], [f"{file}: {reason_alone(error)}"])
    for number, line in enumerate(lines, 1):
        try:
            decisions.append(msgspec.json.decode(line, type=PairedDecision))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            skipped.append(f"{file}, line {number}: {error}")
    return DecisionFile(decisions, skipped)
