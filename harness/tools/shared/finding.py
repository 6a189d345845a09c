"""One line of what `adreno-bench doctor` says: what this machine or a device has or lacks, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from device_runner.failures import Failure


class Condition(str, Enum):
    """How good or bad it is."""

    OK = "ok"
    NOTE = "note"
    """Worth knowing; the harness works without."""
    MISSING = "missing"
    """A run needs it."""


@dataclass(frozen=True)
class DoctorFinding:
    """One line of the doctor's report."""

    what: str
    state: Condition
    seen: str
    fix: str = ""

    @classmethod
    def of(cls, what: str, seen: str, fix: str, bad: Condition = Condition.NOTE) -> DoctorFinding:
        """Return a finding that is `ok` if there is nothing to fix."""
        return cls(what, bad if fix else Condition.OK, seen, fix)


Check = Callable[[Path], Iterator[DoctorFinding]]
"""A check of this host, which is given the cache's root."""


def guarded(what: str, findings: Iterator[DoctorFinding]) -> Iterator[DoctorFinding]:
    """Yield the findings of one check, and one more if it fails: a check that breaks must not hide the others."""
    try:
        yield from findings
    except Failure as failure:
        yield DoctorFinding(what, Condition.MISSING, failure.message, failure.hint)
    except Exception as error:
        yield DoctorFinding(what, Condition.MISSING, f"{type(error).__name__}: {error}")
