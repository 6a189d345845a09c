"""What this machine or a device has and lacks, and how to fix what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

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


def guarded(what: str, findings: Iterator[DoctorFinding]) -> Iterator[DoctorFinding]:
    """Yield the findings of one check, and one more if it fails: a check that breaks must not hide the others."""
    try:
        yield from findings
    except Failure as failure:
        yield DoctorFinding(what, Condition.MISSING, failure.message, failure.hint)
    except Exception as error:
        yield DoctorFinding(what, Condition.MISSING, f"{type(error).__name__}: {error}")
