"""Whether two runs fail in the same way: a smaller network that fails otherwise shows another defect."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.run.outcome import Outcome

if TYPE_CHECKING:
    from harness.run.record import Record

_DIFFERS = re.compile(r"0x[0-9a-f]+|\d+|'[^']*'|\"[^\"]*\"|\bon [^:]+(?=:)")
"""What says where, and not what: numbers, quoted names, the kernel that the compiler was at."""


@dataclass(frozen=True)
class FailureKind:
    """What is looked for while a network shrinks."""

    outcome: Outcome
    pattern: str
    """The message without what differs from network to network; empty for a wrong answer, of which any is as good."""

    @classmethod
    def of(cls, record: Record) -> FailureKind:
        """Of a run."""
        wrong = record.outcome is Outcome.WRONG_RESULT
        return cls(record.outcome, "" if wrong else " ".join(_DIFFERS.sub("", record.message).split()))
