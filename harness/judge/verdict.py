"""All verdicts, on two latencies and on whole cases. Imports nothing else of this project."""

from __future__ import annotations

from enum import Enum


class Verdict(str, Enum):
    """The change of something from base to head; docs/reference/glossary.md explains each."""

    SAME = "same"
    """A relevant change is excluded."""
    FASTER = "faster"
    SLOWER = "slower"
    WRONG = "wrong"
    BROKEN = "broken"
    FIXED = "fixed"
    HEAVIER = "heavier"
    """For machine code, whose counts have no noise: more instructions, fewer waves or more spills."""
    LIGHTER = "lighter"
    INCONCLUSIVE = "inconclusive"
    NEW = "new"
    """Right, and there is nothing to compare it with."""
    GONE = "gone"
    """Known of base only."""

    @property
    def changed(self) -> bool:
        """Whether a latency changed, in either direction."""
        return self in (Verdict.FASTER, Verdict.SLOWER)

    @property
    def tells(self) -> bool:
        """Whether it is a decision."""
        return self not in (Verdict.INCONCLUSIVE, Verdict.NEW, Verdict.GONE)
